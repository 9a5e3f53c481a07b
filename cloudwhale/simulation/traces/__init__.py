"""Traces of jobs: public ones, a user's own, a made-up one."""

from cloudwhale.simulation.traces.estimates import Estimates, estimated, estimates
from cloudwhale.simulation.traces.reading import Reading, Trace, read
from cloudwhale.simulation.traces.rows import TraceError

__all__ = ["Estimates", "Reading", "Trace", "TraceError", "estimated", "estimates", "read"]
