"""By which address others of its network reach this machine."""

import os
import socket
from contextlib import suppress
from urllib.parse import urlsplit

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
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
    endpoint = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")
    host = urlsplit(endpoint).hostname or ELSEWHERE
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((host, 9))
        return str(asked.getsockname()[0])
    return LOOPBACK
