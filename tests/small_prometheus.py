"""A real Prometheus on loopback that scrapes one target, with the rules of `infra/prometheus`."""

import json
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shell import until

from cloudwhale.clock import SystemClock

RULES = Path(__file__).parents[1] / "infra" / "prometheus" / "cloudwhale.rules.yml"
EVERY = "1s"
ANSWERS_WITHIN_S = 60.0


def a_free_port() -> int:
    """Return a port that nobody listens at now."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    port: int
    began_at: float

    def range(self, query: str) -> list[dict[str, Any]]:
        """Return the series of a query from the beginning until now, a sample each second."""
        window = {"start": self.began_at, "end": SystemClock().now(), "step": 1}
        return list(self._asked("query_range", query=query, **window)["result"])

    def value(self, query: str) -> float:
        """Return the value of a query that has one series now."""
        (one,) = self._asked("query", query=query)["result"]
        return float(one["value"][1])

    def has(self, query: str) -> bool:
        """Say whether a query finds anything now."""
        return bool(self._asked("query", query=query)["result"])

    def rules(self) -> Sequence[dict[str, Any]]:
        """Return the rules, and how each has fared."""
        return [rule for group in self._asked("rules")["groups"] for rule in group["rules"]]

    def is_ready(self) -> bool:
        """Say whether it answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def _asked(self, what: str, **words: object) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{what}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=ANSWERS_WITHIN_S) as answer:
            return json.load(answer)["data"]


@contextmanager
def a_prometheus(folder: Path, target: int) -> Generator[Prometheus]:
    """Let one scrape a port of this host; nothing of it is left."""
    settings = {
        "global": {
            "scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": "1s",
        },
        "scrape_configs": [
            {
                "job_name": "cloudwhale",
                "static_configs": [{"targets": [f"127.0.0.1:{target}"]}],
            }
        ],
        "rule_files": [str(RULES)],
    }  # fmt: skip
    folder.mkdir()
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(settings))  # which is YAML, too
    one = Prometheus(a_free_port(), SystemClock().now())
    words = [
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address=127.0.0.1:{one.port}",
        "--log.level=error",
    ]
    process = subprocess.Popen(["prometheus", *words], cwd=folder)
    try:
        until("Prometheus answers", one.is_ready)
        yield one
    finally:
        process.terminate()
        process.wait()
