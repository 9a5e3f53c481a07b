"""Fetches an attempt's image before it starts, and tells of it in the attempt's own log."""

from collections.abc import Callable

from cloudwhale.agent.containers.client import DockerTrouble
from cloudwhale.agent.containers.images import BYTES_PER_MIB, Fetching, fetch
from cloudwhale.agent.seen import CannotStart
from cloudwhale.agent.shim_log import Segments
from cloudwhale.agent.underway import Tools, Underway


def fetched(one: Underway, tools: Tools, wanted: Callable[[], bool]) -> str | CannotStart:
    """Make sure that its image is here; return what it took (empty: nothing), or why it cannot be.

    Takes as long as it takes. The shim's log begins where this one ends.
    """
    image = one.order.image
    if image is None or one.folder.has_begun:
        return ""
    sizes = tools.sizes
    log = Segments(str(one.folder.log), sizes.log_segment, sizes.log_head, sizes.log_tail)
    tools.logs.add(one.folder.key, one.tail)
    fetching = Fetching(
        image, tools.clock, lambda line: log.write(f"cloudwhale: {line}\n".encode()), wanted
    )
    try:
        took = fetch(fetching)
    except DockerTrouble as trouble:
        return CannotStart(one.folder.key, trouble.how, trouble.says)
    finally:
        log.close()
    if took is None:
        return ""
    size = f", {took.size_bytes / BYTES_PER_MIB:.1f} MiB" if took.size_bytes else ""
    return f"fetched the image {image} in {took.seconds:.1f} s{size}"
