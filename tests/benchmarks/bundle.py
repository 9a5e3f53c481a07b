"""What the agent's archive costs: to make it, to put it into a mailbox, to fetch and unpack it.

    python tests/benchmarks/bundle.py [--json]

Cold: nothing is kept, and pip asks its index; warm: pip's wheels are kept, and our own code has
changed; kept: the archive is there. The mailbox is a folder of this host.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from cloudwhale.control.bundle import Bundle, made
from cloudwhale.control.bundle_delivery import Delivery
from cloudwhale.mailbox.objects import open_objects

T = TypeVar("T")
AGENT = (sys.executable, "-S", "-P", "-m", "cloudwhale.agent", "--help")


@dataclass(frozen=True, slots=True)
class Row:
    """How long one part took."""

    name: str
    seconds: float
    cpu_s: float
    """Of this process alone: pip is another."""


def timed(name: str, do: Callable[[], T]) -> tuple[Row, T]:
    """Return how long something takes, and what came of it."""
    began, cpu = time.perf_counter(), time.process_time()
    found = do()
    return Row(name, time.perf_counter() - began, time.process_time() - cpu), found


def rows(folder: Path) -> tuple[list[Row], Bundle]:
    """Return what each part takes, and the archive."""
    kept = folder / "bundles"
    cold, bundle = timed("made, cold", lambda: made(kept))
    bundle.file.unlink()
    warm, bundle = timed("made, with wheels kept", lambda: made(kept))
    again, _ = timed("looked for, when it is kept", lambda: made(kept))
    objects = open_objects((folder / "mailbox").as_uri())
    delivery = Delivery(objects, lambda: bundle)
    sent, _ = timed("put into the mailbox", delivery.delivered)
    looked, _ = timed("looked for in the mailbox", delivery.delivered)
    fetched, _ = timed("fetched", lambda: objects.get_file(bundle.key, folder / "fetched.tar.gz"))
    unpacked, _ = timed("unpacked", lambda: _unpack(folder))
    began, _ = timed("the agent's first words", lambda: _run(AGENT, _libraries(folder)))
    return [cold, warm, again, sent, looked, fetched, unpacked, began], bundle


def _unpack(folder: Path) -> None:
    (folder / "machine").mkdir()
    _run(("tar", "-xzf", str(folder / "fetched.tar.gz"), "-C", str(folder / "machine")), {})


def _libraries(folder: Path) -> Mapping[str, str]:
    number = "".join(map(str, sys.version_info[:2]))
    top = folder / "machine"
    return {"PYTHONPATH": f"{top}/lib:{top}/lib-cp{number}", "PYTHONDONTWRITEBYTECODE": ""}


def _run(words: tuple[str, ...], environment: Mapping[str, str]) -> None:
    subprocess.run(
        words, check=True, stdout=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", **environment},
    )  # fmt: skip


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cloudwhale-bundle-") as name:
        found, bundle = rows(Path(name))
    if told.json:
        about = {"mib": bundle.size_bytes / 2**20, "pythons": bundle.pythons}
        print(json.dumps({**about, "rows": [asdict(row) for row in found]}))
        return 0
    print(f"{bundle.size_bytes / 2**20:.1f} MiB, for Python {' and '.join(bundle.pythons)}")
    for row in found:
        print(f"{row.name:30} {row.seconds:8.3f} s   {row.cpu_s:8.3f} s of CPU here")
    return 0


if __name__ == "__main__":
    sys.exit(main())
