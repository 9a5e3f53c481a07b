"""What is known of drivers beyond their signatures: read from their code, libcloud 3.9."""

from collections.abc import Mapping
from typing import NamedTuple

USUAL = ("ex_userdata", "ex_user_data", "cloud_init")
"""How drivers call the user data that they send as it is, or encode themselves."""

OF_DRIVER: Mapping[str, str] = {
    "cloudscale": "ex_create_attr.user_data",
    "gce": "ex_metadata.user-data",
}
"""Where it is a key within a word."""

LATE_NAMES = frozenset({"ec2", "eucalyptus", "nimbus", "outscale", "outscale_inc", "outscale_sas"})
"""Who makes a machine with one call and names it with another: one that was made when we died in
between has no name, and nobody would find it."""

GETTERS = ("ex_get_node_details", "ex_get_node")
"""How drivers call the look at one machine."""
BY_ID = ("node_id", "id")
"""What the first word of such a look must be: one that takes names would miss them all."""


class Taken(NamedTuple):
    """The place of `create_node` that takes user data."""

    word: str
    key: str = ""
    """Within it; empty: the word itself takes the text."""


def place_of(path: str) -> Taken:
    """Return a place as the settings write it, `WORD` or `WORD.KEY`."""
    word, _, key = path.partition(".")
    return Taken(word, key)
