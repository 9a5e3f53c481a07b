"""Whose certificates are believed, and why a target was not reached, in words."""

import re
import ssl

from cloudwhale.control.notifying.targets import Target
from cloudwhale.spi.errors import SettingsError

_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})")


def trusting(target: Target) -> ssl.SSLContext:
    """Return what checks a target's certificate: those this host trusts, and its `ca_file`.

    Raise SettingsError when that file cannot be read or holds no certificate.
    """
    context = ssl.create_default_context()
    if target.ca_file:
        try:
            context.load_verify_locations(target.ca_file)
        except (OSError, ValueError) as error:  # of which ssl.SSLError is one
            why = "holds no certificate" if isinstance(error, ssl.SSLError) else "cannot be read"
            raise SettingsError(
                f"[notify.{target.name}]: ca_file {target.ca_file} {why}",
                "Write the certificate of who has signed the server's there, as PEM.",
            ) from error
    return context


def why(error: Exception) -> str:
    """Return why nobody was reached; holds nothing that a server has written."""
    if isinstance(error, TimeoutError):
        return "nothing in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted: {error.verify_message}; where it is your own, "
            f"name the file of who has signed it as `ca_file`"
        )
    if isinstance(error, ssl.SSLError):
        return f"no TLS with it: {error.reason or 'it speaks none'}"
    tunnel = _TUNNEL.match(str(error))
    if tunnel is not None:
        return f"the proxy answers {tunnel[1]}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
