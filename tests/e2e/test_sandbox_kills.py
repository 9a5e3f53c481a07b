"""Controllers, killed for real around every thing that they do to a cloud and its machines.

What they do is found out by letting one live; each deed of that life is then one to die around.
"""

import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mortal_box import NOWHERE, Home, MortalBox, Point, Thing
from shell import until

from cloudwhale.model.job import JobState

AT_ONCE = 4
BUDGET_USD = 5
WORK = ("controller", "--until-empty")
LAG_S = 60.0  # of the box: EventBridge Scheduler fires within the minute
KEPT = ("template", "group")
"""What belongs to no machine and waits for the next one."""
AT_ONCE_WITH_OTHERS = ("order:",)
"""Deeds of several threads. Before every other one is after the one that it follows."""


@dataclass(frozen=True)
class Story:
    """A job, and what a person does to it."""

    command: str
    duration: str
    ends: JobState = JobState.COMPLETED
    cancelled_after: str = ""
    """The deed after which a person cancels it."""

    def file(self, book: Path) -> str:
        return (
            f"name: train\ncommand: echo $CLOUDWHALE_ATTEMPT >> {book}; {self.command}\n"
            f'duration: {self.duration}\nresources: {{gpu: "A10G:1", cpu: 1}}\n'
        )


LONGER_THAN_ANY_WAIT = "2h"
"""So long that a slow host comes to no renewal: only `EXTEND` is about those."""
LAUNCH = Story("true", LONGER_THAN_ANY_WAIT)
EXTEND = Story("sleep 16", "1m\nmax_duration: 4h")
CANCEL = Story("exec sleep 600", LONGER_THAN_ANY_WAIT, JobState.CANCELLED, "stored:Started 1")


@dataclass(frozen=True)
class Life:
    """A home in which a controller has died at a point, or not."""

    story: Story
    point: Point
    home: Home
    has_died: bool

    @property
    def book(self) -> list[str]:
        """The attempts that the job's processes were, in the order of their beginnings."""
        file = self.home.folder / "book"
        return file.read_text().split() if file.exists() else []

    @property
    def is_to_die(self) -> bool:
        """Say whether it cannot but come to its point: other deeds may be done once, or twice."""
        return self.point.deed.endswith(" 1")

    def __str__(self) -> str:
        return f"{self.home.folder.name}: killed {self.point}"


def lived(box: MortalBox, story: Story, name: str, point: Point = NOWHERE) -> Life:
    """Submit the job, and let a controller work until it dies at the point, or is done."""
    home = box.home(name)
    home.write("job.yaml", story.file(home.folder / "book"))
    assert home.run("submit", "job.yaml", "--budget", str(BUDGET_USD)) == 0, home.said
    code = worked(box, home, story, point)
    assert code in (0, -signal.SIGKILL), home.said
    return Life(story, point, home, code != 0)


def worked(box: MortalBox, home: Home, story: Story, point: Point = NOWHERE) -> int:
    """Let a controller work until it dies or is done; return how it ended."""
    asked = home.folder / "cancelled"
    with home.started(*WORK, point=point) as running:
        if story.cancelled_after and not asked.exists():
            until("it begins", lambda: home.has_done(story.cancelled_after) or running.is_over)
            if home.has_done(story.cancelled_after):
                assert home.run("cancel", "train") == 0, home.said
                asked.touch()
        code = running.ends()
    box.look()
    return code


def followed(box: MortalBox, life: Life) -> Life:
    """Let another controller do what is left."""
    if life.has_died:
        code = worked(box, life.home, life.story)
        assert code == 0, f"{life}: {life.home.said}"
    return life


def died_in(box: MortalBox, story: Story, name: str, point: Point) -> Life:
    """Live and die at a point, and be followed.

    What a life does last may fall to whoever else is faster: then it is lived once more.
    """
    life = followed(box, lived(box, story, name, point))
    return life if life.has_died else followed(box, lived(box, story, f"{name}-again", point))


def points(life: Life, *others: Life) -> Iterator[Point]:
    """Yield each deed of a life to die after, and some to die before; none of the others' lives."""
    known = {name for other in others for names in other.home.deeds for name in names}
    for names in life.home.deeds:
        new = [name for name in names if name not in known]
        is_again = all(name.startswith("stored:") and not name.endswith(" 1") for name in names)
        known.update(names)
        if not new or (is_again and not others):
            continue
        yield Point(new[0])
        if new[0].startswith(AT_ONCE_WITH_OTHERS):
            yield Point(new[0], "before")


def test_after_one_restart_nothing_is_lost_doubled_or_left_over(tmp_path: Path) -> None:
    stories = {"launch": LAUNCH, "extend": EXTEND, "cancel": CANCEL}
    with (
        MortalBox(tmp_path, "speed: 20\nowned: none\n") as box,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        begun = {name: pool.submit(lived, box, stories[name], name) for name in stories}
        whole = {name: one.result() for name, one in begun.items()}
        asked = list(points(whole["launch"]))
        assert {"ec2:create_fleet 1", "scheduler:create_schedule 1", "order:lease:1 1",
                "order:start 1", "ec2:terminate_instances 1", "scheduler:delete_schedule 1",
                } <= {one.deed for one in asked}  # fmt: skip
        todo = [(LAUNCH, f"launch-{n}", one) for n, one in enumerate(asked)]
        for name in ("extend", "cancel"):
            more = points(whole[name], whole["launch"])
            todo += [(stories[name], f"{name}-{n}", one) for n, one in enumerate(more)]
        assert {"scheduler:update_schedule 1", "order:lease:2 1", "order:stop 1"} <= {
            one.deed for *_, one in todo
        }
        lives = [*whole.values(), *pool.map(lambda one: died_in(box, *one), todo)]
        alive = [str(life) for life in lives if life.is_to_die and not life.has_died]
        assert not alive, "what is done once in each life is died around in each"
        assert not faults_of(box, lives)


def faults_of(box: MortalBox, lives: Sequence[Life]) -> dict[str, list[str]]:
    """Return what is wrong with lives, and with all that their cloud has seen, by life."""
    launched, things, bills = box.launched(), box.things(), box.bills()
    found: dict[str, list[str]] = {}
    for life in lives:
        books = life.home.books
        mine = Counter(what for what, _, whose in things if whose == books.installation)
        left = {what: n for what, n in mine.items() if what not in KEPT or n > 1}
        doubled = [key for key, n in launched.items() if key[0] == books.installation and n > 1]
        billed = sum(one.cost for one in bills.get(books.installation, ()))
        [job] = books.jobs
        wrong = [
            f"left: {left}" if left else "",
            f"doubled: {doubled}" if doubled else "",
            f"job: {job.state}" if job.state is not life.story.ends else "",
            f"begun: {life.book}, {job.attempt} attempts" if not is_once(life, job.attempt) else "",
            f"money: {books.spent} of {billed}" if books.spent != billed else "",
            f"set aside: {books.reserved}" if books.reserved or books.rentals else "",
            "over budget" if billed > BUDGET_USD * 1_000_000 else "",
        ]
        if any(wrong):
            found[str(life)] = [one for one in wrong if one]
    return found


def is_once(life: Life, attempts: int) -> bool:
    """Say whether no attempt has begun twice, and the last one, which is at an end, has begun."""
    book = life.book
    return len(set(book)) == len(book) and book[-1:] == [str(attempts)]


def test_with_no_restart_no_machine_outlives_its_stop_and_all_was_set_aside(
    tmp_path: Path,
) -> None:
    story = Story("sleep 12", "1m\nmax_duration: 4h")
    weather = "speed: 30\nowned: none\n"
    with MortalBox(tmp_path, weather) as box, ThreadPoolExecutor(AT_ONCE) as pool:
        whole = lived(box, story, "whole")
        asked = [one for one in points(whole) if one.when == "after"]
        ends = next(n for n, one in enumerate(asked) if one.deed.startswith("ec2:terminate"))
        todo = [(story, f"life-{n}", one) for n, one in enumerate(asked[:ends])]
        lives = list(pool.map(lambda one: lived(box, *one), todo))
        books = {str(life): life.home.books for life in lives}
        stops = [one.lease.stop_at for kept in books.values() for one in kept.rentals]
        assert len(stops) >= len(lives) - 3, "money is set aside before anything is asked for"
        until("the last stop has passed", lambda: box.now() > max(stops) + LAG_S)
        until("no machine runs", lambda: not running(box), limit_s=60.0)
        bills = box.bills()
        for name, kept in books.items():
            billed = sum(one.cost for one in bills.get(kept.installation, ()))
            assert billed <= kept.spent + kept.reserved <= BUDGET_USD * 1_000_000, name


def running(box: MortalBox) -> list[Thing]:
    return [one for one in box.things() if one[0] == "instance"]
