"""A bad day at the cloud: no room in a zone, a boot that hangs, calls refused, a slow S3."""

from pathlib import Path

from mortal_box import MortalBox

from cloudwhale.model.job import JobState
from cloudwhale_providers.sandbox import Sandbox

CHEAPEST = "us-west-2a"
"""Where the type that the job takes costs least, as the price list ships."""
WEATHER = f"""
speed: 60
owned: none
capacity: {{zone: {CHEAPEST}, machines: 0}}
hang: {{machine: 1}}
throttle: 0.1
s3: {{delay: 50ms, mib_s: 5}}
"""
JOB = """
name: train
command: echo ran >> {book}
duration: 20m
resources: {{gpu: "A10G:1", cpu: 1}}
"""


def test_on_a_bad_day_a_job_is_done_once_where_there_is_room_and_all_is_paid_for(
    tmp_path: Path,
) -> None:
    with MortalBox(tmp_path, WEATHER) as box:
        home = box.home("home")
        home.write("job.yaml", JOB.format(book=home.folder / "book"))
        assert home.run("submit", "job.yaml", "--budget", "5") == 0, home.said
        assert home.run("controller", "--until-empty") == 0, home.said
        books, bill = home.books, Sandbox().meter(box.box)
        [job] = books.jobs
        assert job.state is JobState.COMPLETED and (home.folder / "book").read_text() == "ran\n"
        hung, *others = bill
        assert others, "the one that did not boot was given back, and another came"
        assert hung.until is not None and hung.until - hung.since < 1800, "it is not waited for"
        assert CHEAPEST not in {one.zone for one in bill}
        assert books.spent == sum(one.cost for one in bill) > 0 == books.reserved
        assert {what for what, *_ in box.things()} <= {"template", "group"}
