"""What is wanted of an AWS account, and what its refusals say about who asks."""

import re

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.aws.asking import code_of
from cloudwhale_providers.aws.rows import Found, failed
from cloudwhale_providers.aws.stopping import Pause
from cloudwhale_providers.wants import Round, Want

__all__ = ["REFUSED", "Round", "Want", "looking", "refused"]

REFUSED = frozenset({"403", "AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
PERMISSION = re.compile(r"([a-z0-9]+:[A-Z][A-Za-z]+) in ")
"""So begins what a call of AWS was refused with."""


def looking(pause: Pause) -> Round:
    """Return a look at an account."""
    return Round("aws", pause, refused)


def refused(error: CloudwhaleError) -> Found:
    """Return a row's words for what AWS refuses, with the permission that is missing."""
    asked = PERMISSION.match(error.says)
    if code_of(error) not in REFUSED or asked is None:
        return failed(error)
    return failed(error, f"Allow {asked[1]} to whoever sets the account up; then run this again.")
