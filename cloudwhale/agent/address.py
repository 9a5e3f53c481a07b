"""By which address others of its network reach this machine."""

import socket
from contextlib import suppress
from urllib.parse import urlsplit

from cloudwhale.mailbox.kinds import endpoint_of

ELSEWHERE = "192.0.2.1"  # of a network for documentation (RFC 5737): nothing is ever sent there
LOOPBACK = "127.0.0.1"


def own_address(mailbox: str) -> str:
    """Return the address from which this machine speaks to its mailbox; that of loopback at worst.

    A cloud's machine has its private one there, a process of a host speaks over loopback. No packet
    is sent: the kernel says which way one would take.
    """
    parts = urlsplit(mailbox)
    if parts.scheme == "file":
        return LOOPBACK
    host = urlsplit(endpoint_of(mailbox)).hostname or ELSEWHERE
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((host, 9))
        return str(asked.getsockname()[0])
    return LOOPBACK
