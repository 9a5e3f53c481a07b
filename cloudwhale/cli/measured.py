"""Metrics beside a controller: where they are served or written, as the user asked."""

from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cloudwhale.cli.exits import WrongUsage
from cloudwhale.control.host import ControllerHost
from cloudwhale.settings import Settings, prom

if TYPE_CHECKING:
    from cloudwhale.control.scraping import Address

LOOPBACK = "127.0.0.1"


def address_of(text: str) -> "Address":
    """Return where to serve, from `[HOST:]PORT`; raise WrongUsage for what is neither."""
    from cloudwhale.control.scraping import Address

    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and int(port) < 2**16
    if not is_port or (colon and not host):
        raise WrongUsage(
            f"--metrics {text}: this is no [HOST:]PORT.",
            "Write a port, like 9464, or an address before it, like 0.0.0.0:9464 for all of them.",
        )
    return Address(host or LOOPBACK, int(port))


def with_file(settings: Settings, file: Path | None) -> Settings:
    """Return settings with the file that was asked for; raise WrongUsage for a wrong one."""
    if file is None:
        return settings
    try:
        return settings.but(metrics_file=prom(file).absolute())
    except ValueError as error:
        raise WrongUsage(
            f"--metrics-file {file}: the name of the file must end in .prom.",
            "node_exporter reads no other files.",
        ) from error


@contextmanager
def measured(
    host: ControllerHost, settings: Settings, address: "Address | None" = None
) -> Generator[None]:
    """Serve and write metrics of this process's controller, where that is asked for."""
    with ExitStack() as stack:
        if address is not None or settings.metrics_file is not None:
            _tell(stack, host, settings.metrics_file, address)
        yield


def _tell(
    stack: ExitStack, host: ControllerHost, file: Path | None, address: "Address | None"
) -> None:
    from cloudwhale.control.exposition import Exposition
    from cloudwhale.control.scraping import Scraped
    from cloudwhale.control.textfile import Textfile

    host.vitals.is_asked = True
    exposition = Exposition(lambda: host.vitals.newest, host.vitals.steady)
    if address is not None:
        stack.enter_context(closing(Scraped(address, exposition)))
    if file is not None:
        stack.enter_context(closing(Textfile(file, exposition)))
