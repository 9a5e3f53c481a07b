"""Claims: a node has one agent, and no order is obeyed by two."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudwhale.agent import claiming
from cloudwhale.agent.claiming import ClockDiffers, NameTaken, Standing, Wanted, claim
from cloudwhale.agent.place import Place, ReadTo
from cloudwhale.clock import SystemClock
from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.claims import SKEW_S, Claim, Claims
from cloudwhale.mailbox.documents import Heartbeat, Left
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.model.units import Instant, Seconds

LEASE_S: Seconds = 600.0


class Clock(SystemClock):
    """A clock that may be ahead of, or behind, the real one."""

    ahead_s: Seconds = 0.0

    def now(self) -> Instant:
        return super().now() + self.ahead_s


class Cluster:
    """Machines that want to be the node `gpu`."""

    def __init__(self, folder: Path, objects: StoreObjects) -> None:
        self.folder, self.objects, self.clock = folder, objects, Clock()
        self.claims = Claims(objects, "gpu")
        self._starts = 0

    def start(self, machine: str) -> Standing:
        """Start an agent on a machine, which has one folder; the one before it has ended."""
        self._starts += 1
        place = Place(self.folder / machine, "gpu")
        place.attempts.mkdir(parents=True, exist_ok=True)
        wanted = Wanted("gpu", f"{machine}-{self._starts}", LEASE_S)
        return claim(wanted, place, self.objects, self.clock)

    def say(self, report: Heartbeat | Left) -> None:
        """Post a report of whoever."""
        inbox = inbox_from(self.objects, "gpu")
        inbox.post(report.model_dump_json().encode(), inbox.newest())

    def newest(self) -> Claim:
        """Return the newest claim."""
        held = self.claims.newest()
        assert held is not None and held.claim is not None
        return held.claim

    def silence(self, seconds: float) -> None:
        """Make all that was said so much older."""
        folder = self.objects.folder
        assert folder is not None
        for path in folder.rglob("*.json"):
            at = path.stat().st_mtime - seconds
            os.utime(path, (at, at))


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Give machines that cannot see one another's processes."""
    monkeypatch.setattr(claiming, "_system", lambda: "")
    yield Cluster(tmp_path, open_objects((tmp_path / "mailbox").as_uri()))


def test_the_first_agent_of_a_name_has_it(cluster: Cluster) -> None:
    assert cluster.start("a").stands()
    assert cluster.newest().agent == "a-1"


def test_an_agent_that_starts_again_goes_on_for_its_predecessor(cluster: Cluster) -> None:
    standings = [cluster.start("a") for _ in range(4)]
    assert [standing.number for standing in standings] == [1, 2, 3, 4]
    assert standings[-1].stands()


def test_of_one_places_claims_the_first_and_the_newest_are_kept(cluster: Cluster) -> None:
    for _ in range(5):
        cluster.start("a")
    assert cluster.objects.keys("agents/gpu") == [
        "agents/gpu/000001.json",
        "agents/gpu/000005.json",
    ]


def test_a_second_machine_is_refused_the_name_of_one_that_lives(cluster: Cluster) -> None:
    cluster.start("a")
    cluster.silence(LEASE_S)
    cluster.say(Heartbeat(at=0.0, agent="a-1"))
    with pytest.raises(NameTaken, match="heard 0 s ago"):
        cluster.start("b")
    assert cluster.newest().agent == "a-1"


def test_a_second_machine_is_refused_the_name_of_one_that_has_said_nothing_yet(
    cluster: Cluster,
) -> None:
    cluster.start("a")
    with pytest.raises(NameTaken, match=r"wait 6\d\d s"):
        cluster.start("b")


def test_a_name_is_not_free_before_the_lease_and_the_skew_have_passed(cluster: Cluster) -> None:
    cluster.start("a")
    cluster.silence(LEASE_S + SKEW_S - 5)
    with pytest.raises(NameTaken):
        cluster.start("b")
    cluster.silence(6)
    assert cluster.start("b").stands()


def test_an_agent_whose_name_was_taken_over_is_told_so(cluster: Cluster) -> None:
    first = cluster.start("a")
    cluster.silence(LEASE_S + SKEW_S + 1)
    cluster.start("b")
    assert not first.stands()
    with pytest.raises(NameTaken):
        cluster.start("a")


def test_a_name_is_free_when_its_agent_has_left(cluster: Cluster) -> None:
    cluster.start("a")
    cluster.say(Left(at=0.0, agent="a-1"))
    assert cluster.start("b").stands()


def test_somebody_elses_goodbye_frees_no_name(cluster: Cluster) -> None:
    cluster.start("a")
    cluster.say(Left(at=0.0, agent="z-9"))
    with pytest.raises(NameTaken):
        cluster.start("b")


def test_whoever_takes_a_name_back_has_not_read_the_orders_of_the_time_between(
    cluster: Cluster,
) -> None:
    cluster.start("a")
    place = Place(cluster.folder / "a", "gpu")
    place.keep_read_to(ReadTo(number=3))
    cluster.silence(LEASE_S + SKEW_S + 1)
    cluster.start("b")
    cluster.silence(LEASE_S + SKEW_S + 1)
    cluster.start("a")
    assert place.read_to() is None


def test_whoever_only_starts_again_remembers_what_it_has_read(cluster: Cluster) -> None:
    cluster.start("a")
    place = Place(cluster.folder / "a", "gpu")
    place.keep_read_to(ReadTo(number=3))
    cluster.start("a")
    assert place.read_to() == ReadTo(number=3)


def test_an_agent_that_died_between_claim_and_note_has_still_claimed(cluster: Cluster) -> None:
    cluster.start("a")
    note = cluster.folder / "a" / "nodes" / "gpu" / "claim.json"
    before = note.read_text()
    cluster.start("a")
    note.write_text(before)
    assert cluster.start("a").number == 3


@pytest.mark.parametrize(("ahead_s", "way"), [(40.0, "ahead of"), (-40.0, "behind")])
def test_a_clock_that_differs_from_the_stores_is_refused(
    cluster: Cluster, ahead_s: float, way: str
) -> None:
    cluster.clock.ahead_s = ahead_s
    with pytest.raises(ClockDiffers, match=f"clock is 40 s {way}"):
        cluster.start("a")


@pytest.mark.parametrize("ahead_s", [25.0, -25.0])
def test_a_clock_that_differs_a_little_is_borne(cluster: Cluster, ahead_s: float) -> None:
    cluster.clock.ahead_s = ahead_s
    assert cluster.start("a").stands()


def test_whether_a_name_is_free_is_judged_by_the_stores_clock(cluster: Cluster) -> None:
    cluster.start("a")
    cluster.clock.ahead_s = 3600.0
    with pytest.raises(NameTaken):
        cluster.start("b")


def test_a_claim_of_a_version_that_nobody_here_knows_is_respected(cluster: Cluster) -> None:
    cluster.objects.create("agents/gpu/000001.json", b'{"v": 9}')
    with pytest.raises(NameTaken, match="another version"):
        cluster.start("a")


# -- agents of one host, which can see each other's processes --------------------------------


def test_an_agent_of_this_host_that_died_frees_its_name_at_once(tmp_path: Path) -> None:
    url = (tmp_path / "mailbox").as_uri()
    code = (
        "import sys; from pathlib import Path\n"
        "from cloudwhale.agent.claiming import Wanted, claim\n"
        "from cloudwhale.agent.place import Place\n"
        "from cloudwhale.clock import SystemClock\n"
        "from cloudwhale.mailbox.objects import open_objects\n"
        "place = Place(Path(sys.argv[1]), 'gpu'); place.take()\n"
        "claim(Wanted('gpu', 'x', 600.0), place, open_objects(sys.argv[2]), SystemClock())\n"
        "print('claimed', flush=True); sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "a"), url],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with other:
        assert other.stdout is not None and other.stdout.readline() == b"claimed\n"
        cluster = Cluster(tmp_path, open_objects(url))
        with pytest.raises(NameTaken, match=f"process {other.pid} of this host"):
            cluster.start("b")
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert cluster.start("b").stands(), "one that waits to be collected is gone"
