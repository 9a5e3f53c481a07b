"""The commands."""

from cloudwhale.cli.start import main

__all__ = ["main"]
