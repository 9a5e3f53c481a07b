"""`/metrics` and the textfile: hanging scrapers, ports in use and full disks harm nobody."""

import http.client
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from makers import a_job, a_node, a_world
from scraping import an_exposition, series

from cloudwhale.cli.exits import WrongUsage
from cloudwhale.cli.measured import address_of
from cloudwhale.clock import pause
from cloudwhale.control.scraping import AT_ONCE, Address, Scraped
from cloudwhale.control.textfile import Textfile
from cloudwhale.control.vitals import Vitals
from cloudwhale.model.world import Sighting, World
from cloudwhale.reporting.metrics_table import AT_MOST

LIMIT_S = 60.0


def vitals_of(world: World) -> Vitals:
    vitals = Vitals()
    vitals.is_asked = True
    vitals.begins()
    vitals.ends(world, lambda now: world, {"under-way": 2, "failed": 0}, "")
    return vitals


@contextmanager
def served(vitals: Vitals, port: int = 0) -> Generator[Address]:
    with closing(Scraped(Address("127.0.0.1", port), an_exposition(vitals))) as scraped:
        for _ in range(int(LIMIT_S / 0.05)):
            if scraped.serving is not None:
                break
            pause(0.05)
        assert scraped.serving is not None
        yield scraped.serving


def answer(at: Address, path: str = "/metrics", **headers: str) -> tuple[int, str, str]:
    with closing(http.client.HTTPConnection(at.host, at.port, timeout=LIMIT_S)) as connection:
        connection.request("GET", path, headers=headers)
        got = connection.getresponse()
        return got.status, got.headers["Content-Type"], got.read().decode()


def test_what_a_tick_has_left_is_served_as_text_and_as_open_metrics() -> None:
    with served(vitals_of(a_world([a_job()]))) as at:
        status, kind, text = answer(at)
        assert status == 200 and kind.startswith("text/plain")
        assert series(text)['cloudwhale_effects{state="under-way"}'] == 2
        _, kind, text = answer(at, Accept="application/openmetrics-text; version=1.0.0")
        assert kind.startswith("application/openmetrics-text") and text.endswith("# EOF\n")
        assert answer(at, "/")[0] == 404


@pytest.mark.parametrize("said", [b"", b"GET /metrics HT"])
def test_scrapers_that_hang_keep_nobody_else_waiting_however_many_they_are(said: bytes) -> None:
    with served(vitals_of(a_world())) as at, ExitStack() as hung:
        for _ in range(3 * AT_ONCE):
            one = hung.enter_context(socket.create_connection(at, timeout=LIMIT_S))
            one.sendall(said)
        assert answer(at)[0] == 200
        assert answer(at)[0] == 200, "those who hang are still there"


def test_who_reads_nothing_of_its_answer_keeps_nobody_else_waiting() -> None:
    many = a_world([a_job(f"j-{n}", project=f"{'p' * 200}-{n}") for n in range(500)])
    with served(vitals_of(many)) as at, closing(socket.socket()) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect(at)
        slow.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert len(answer(at)[2]) > 20_000


def test_a_port_in_use_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudwhale.control.scraping.TRY_AGAIN_S", 0.05)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with closing(Scraped(Address("127.0.0.1", port), an_exposition(Vitals()))) as scraped:
            pause(0.3)
            assert scraped.serving is None
            taken.close()
            for _ in range(int(LIMIT_S / 0.05)):
                if scraped.serving is not None:
                    break
                pause(0.05)
            assert scraped.serving == ("127.0.0.1", port)


def test_ends_while_its_port_is_in_use() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        Scraped(Address("127.0.0.1", taken.getsockname()[1]), an_exposition(Vitals())).close()
    assert "metrics" not in {one.name for one in threading.enumerate()}


def test_before_the_first_tick_there_are_names_and_no_values() -> None:
    with served(Vitals()) as at:
        status, _, text = answer(at)
    assert status == 200 and "# TYPE cloudwhale_jobs gauge" in text and not series(text)


@pytest.mark.parametrize("way", ["sightings", "projects"])
def test_ten_thousand_of_a_kind_have_so_many_series_at_most(way: str) -> None:
    count = 10_000
    if way == "projects":
        made = a_world([a_job(f"j-{n}", project=f"p-{n}") for n in range(count)])
        name, most = "cloudwhale_project_jobs", AT_MOST["project"]
    else:
        nodes = [a_node(f"n-{n}") for n in range(count)]
        seen = {one.id: Sighting(node=one.id, heard_at=float(n)) for n, one in enumerate(nodes)}
        made = a_world([], nodes, now=20_000.0, sightings=seen)
        name, most = "cloudwhale_heartbeat_age_seconds", AT_MOST["node"]
    found = series(an_exposition(vitals_of(made)).text()[0].decode())
    rows = {key: value for key, value in found.items() if key.startswith(name + "{")}
    assert len(rows) == most + 1 and len(found) < 1000
    if way == "projects":
        assert sum(rows.values()) == count
        assert rows[f'{name}{{project="other",state="pending"}}'] == count - most
    else:
        assert max(rows.values()) == 20_000.0 == rows[f'{name}{{node="n-0"}}']
        assert rows[f'{name}{{node="other"}}'] == 20_000.0 - most


def test_labels_of_any_letters_are_read_back_as_they_are() -> None:
    name = 'a,"b"\\ \n{} 🐳'
    text = an_exposition(vitals_of(a_world([a_job(project=name)]))).text()[0].decode()
    assert 'cloudwhale_project_jobs{project="a,\\"b\\"\\\\ \\n{} 🐳",state="pending"} 1.0' in text


@pytest.mark.skipif(
    shutil.which("promtool") is None and not os.environ.get("CI"),
    reason="promtool (Prometheus) is not here",
)
def test_promtool_finds_nothing_to_say_of_a_scrape() -> None:
    text, _ = an_exposition(vitals_of(a_world([a_job()]))).text()
    ended = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, timeout=LIMIT_S
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_the_textfile_is_whole_and_readable_by_others(tmp_path: Path) -> None:
    file = tmp_path / "whale.prom"
    before = os.umask(0o022)
    try:
        Textfile(file, an_exposition(vitals_of(a_world()))).close()
    finally:
        os.umask(before)
    assert series(file.read_text())["cloudwhale_plan_refused"] == 0
    assert file.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in tmp_path.iterdir()] == ["whale.prom"]


def test_a_textfile_of_another_controller_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "whale.prom"
    file.write_text("theirs")
    Textfile(file, an_exposition(Vitals())).close()
    assert file.read_text() == "theirs"


def test_a_textfile_that_cannot_be_written_is_told_and_harms_nobody(tmp_path: Path) -> None:
    textfile = Textfile(tmp_path / "no" / "whale.prom", an_exposition(vitals_of(a_world())))
    textfile.close()
    assert "cannot be written: No such file" in textfile.trouble


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:9464", ("::1", 9464)),
        ("whale.example:1", ("whale.example", 1)),
    ],
)
def test_addresses_are_read(text: str, at: tuple[str, int]) -> None:
    assert address_of(text) == at


@pytest.mark.parametrize("text", ["", ":9464", "70000", "host", "host:", "-1", "1.5", "a:b", "٣"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(WrongUsage, match="HOST"):
        address_of(text)
