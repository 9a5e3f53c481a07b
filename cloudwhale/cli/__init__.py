"""The commands."""

from cloudwhale.cli.entry import main

__all__ = ["main"]
