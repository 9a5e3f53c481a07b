"""The same board for many needs and nodes."""

from cloudwhale.planning.board import SmallBoard


class LargeBoard(SmallBoard):
    """The same board for many needs and nodes."""
