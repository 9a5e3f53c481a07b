"""Which addresses are sent to: those of the web that nobody on the way reads."""

import ipaddress
import re
from urllib.parse import urlsplit


def url_fault(url: str) -> str:
    """Say why nothing is sent to an address, empty when it is well."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "the address is none"
    if parts.scheme not in ("https", "http") or not host or re.search(r"[\s\x00-\x1f\x7f]", url):
        return "the address is none of the web"
    if parts.username is not None or parts.password is not None:
        return "the address holds a name or a password, which would be shown"
    if _is_nobody_s(host):
        return "nobody is told at such an address (link-local, multicast or unspecified)"
    if parts.scheme == "http" and not is_loopback(host):
        return "over http, anybody on the way could read and change what is sent; use https"
    return ""


def _is_nobody_s(host: str) -> bool:
    """Say whether an address can be no receiver's: 169.254.169.254 tells machines secrets."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_link_local or address.is_multicast or address.is_unspecified


def is_loopback(host: str) -> bool:
    """Say whether a host is this one, by its address."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
