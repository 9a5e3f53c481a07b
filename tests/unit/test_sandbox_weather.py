"""What a script says becomes weather, and what is wrong in it is said with its place."""

from pathlib import Path

import pytest

from cloudwhale.spi.errors import SpecError
from cloudwhale_providers.sandbox.endpoint.weather_values import (
    ANY,
    Capacity,
    Hang,
    Interruption,
    Maintenance,
    MetadataFault,
    Outage,
    PriceFactor,
    Reap,
    Refusal,
    Weather,
    Which,
)
from cloudwhale_providers.sandbox.weather import KEYS, Script, read

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "weather").glob("*.yaml"))
DOCS = Path(__file__).parents[2] / "docs" / "sandbox.md"


def written(folder: Path, text: str) -> Script:
    file = folder / "w.yaml"
    file.write_text(text)
    return read(file)


def weather(folder: Path, text: str) -> Weather:
    return written(folder, text).weather


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_weather(example: Path) -> None:
    assert read(example).weather != Weather()


def test_there_are_three_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_documented(key: str) -> None:
    assert f"| `{key}` |" in DOCS.read_text()


def test_an_empty_file_is_fine_weather_in_real_time(tmp_path: Path) -> None:
    script = written(tmp_path, "# nothing\n")
    assert (script.speed, script.owned, script.weather) == (1.0, True, Weather())


def test_two_scripts_are_told_apart(tmp_path: Path) -> None:
    one, same, other = (written(tmp_path, f"speed: {n}\n").digest for n in (2, 2, 3))
    assert one == same != other


def test_a_machine_is_interrupted_so_long_after_its_boot(tmp_path: Path) -> None:
    said = weather(tmp_path, "interrupt: 20s\nboot: 30s\n")
    assert said.boot_s == 30.0
    assert said.interruptions == (Interruption(age_s=50.0, nth=1),)


def test_whole_tables_are_read(tmp_path: Path) -> None:
    said = weather(
        tmp_path,
        """
capacity:
  - {type: g5.*, market: spot, machines: 0, until: 10m}
  - {machines: 1, again: no}
refuse: {code: Unsupported, zone: us-east-1b}
interrupt: {at: 1h, notice: 10s, rebalance: 5s, machine: 2}
fail: {after: 30s, code: Server.InternalError}
price: [doubled, {from: 1m, times: 3, zone: us-*}]
s3: {delay: 100ms, mib_s: 2}
throttle: 0.1
quota: {L-3819A6DF: 8}
unseen: 3s
account: {spot_role: no, policies: strict}
seed: 7
""",
    )
    assert said == Weather(
        capacity=(
            Capacity(Which("g5.*", "*", "spot"), 0, 0.0, 600.0),
            Capacity(ANY, 1, again=False),
        ),
        refusals=(Refusal(Which(zone="us-east-1b"), "Unsupported"),),
        interruptions=(
            Interruption(at_s=3600.0, notice_s=10.0, rebalance_s=5.0, nth=2),
        ),
        reaps=(Reap(30.0),),
        price_factors=(PriceFactor(0.0, 2.0), PriceFactor(60.0, 3.0, Which(zone="us-*"))),
        s3_slow_s=0.1,
        s3_mib_s=2.0,
        throttle_share=0.1,
        quotas={"L-3819A6DF": 8.0},
        unseen_s=3.0,
        spot_role=False,
        strict_policies=True,
        seed=7,
    )  # fmt: skip


def test_a_box_of_both_clouds_says_what_befalls_either(tmp_path: Path) -> None:
    script = written(
        tmp_path,
        """
clouds: [gcp, aws]
quota: {GPUS_ALL_REGIONS: 0, us-east4/NVIDIA_L4_GPUS: 1, L-3819A6DF: 8}
gs: slow
outage: [{store: gs, from: 10s, until: 1m}, {store: s3}]
account: {closed_apis: [compute.googleapis.com], external_addresses: no}
operation: 5s
""",
    )
    assert script.clouds == ("aws", "gcp")
    assert script.weather == Weather(
        quotas={"GPUS_ALL_REGIONS": 0.0, "us-east4/NVIDIA_L4_GPUS": 1.0, "L-3819A6DF": 8.0},
        gs_slow_s=0.2, gs_mib_s=5.0, outages=(Outage("gs", 10.0, 60.0), Outage("s3")),
        closed_apis=frozenset({"compute.googleapis.com"}), external_addresses=False,
        operation_s=5.0,
    )  # fmt: skip


def test_whichever_machine_runs_is_interrupted_once_for_each_line(tmp_path: Path) -> None:
    said = weather(
        tmp_path,
        """
boot: 5s
interrupt:
  - {after: 10s, which: running}
  - {at: 60s, which: running, notice: 0s}
maintenance: {after: 20s, which: running, ahead: 10m, code: instance-stop}
""",
    )
    assert said.interruptions == (
        Interruption(age_s=15.0, once=True),
        Interruption(at_s=60.0, once=True, notice_s=0.0),
    )
    assert said.maintenance == (
        Maintenance(age_s=25.0, once=True, ahead_s=600.0, code="instance-stop"),
    )


def test_short_forms_mean_the_usual(tmp_path: Path) -> None:
    said = weather(tmp_path, "capacity: 0\nboot: hangs\ns3: slow\nprice: 1.5\nfail: 10s\n")
    assert said.capacity == (Capacity(ANY, 0),)
    assert said.hangs == (Hang(),)
    assert said.s3_slow_s > 0 and said.s3_mib_s
    assert said.price_factors == (PriceFactor(0.0, 1.5),)
    assert said.reaps == (Reap(10.0, nth=1),)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("speed: 60\nsped: 3\n", "2:1", "'sped' is no key that is known here\nDid you mean speed?"),
        ("speed: fast\n", "1:8", "speed: 'fast' is not possible\nWrite a number from 1 to 3600"),
        ("speed: .inf\n", "1:8", "is not possible"),
        ("speed: 0\n", "1:8", "is not possible"),
        (
            "begins: 9pm\n",
            "1:9",
            "'9pm' is no time of day\nWrite one, 21:55 or 21:55 Europe/Berlin",
        ),
        ("begins: 24:00\n", "1:9", "is no time of day"),
        ("begins: 21:55 Europe/Berlim\n", "1:9", "is in no time zone that is known here"),
        ("begins: [21:55]\n", "1:9", "is no single value"),
        ("speed: 1\nspeed: 2\n", "2:1", "'speed' stands here twice"),
        ("boot: 20y\n", "1:7", "boot: '20y' is no length of time\nWrite it like 20s"),
        ("boot: 99999d\n", "1:7", "is more than a year"),
        ("boot: [1]\n", "1:7", "boot: this list is no single value"),
        ("owned: some\n", "1:8", "owned: 'some' is not possible\nWrite none, all"),
        ("capacity: -1\n", "1:11", "capacity: '-1' is not possible"),
        ("capacity: 1.5\n", "1:11", "is no whole number"),
        ("capacity:\n  - {type: g5.*}\n", "2:5", "this table says no number of machines"),
        ("capacity: {machines: 0, from: 2m, until: 1m}\n", "1:42", "is not after its beginning"),
        ("capacity: {machines: 0, market: blue}\n", "1:33", "'blue' is no market"),
        ("interrupt: {after: 3s, at: 4s}\n", "1:12", "does not say when, or says it twice"),
        ("interrupt: {at: 4s, market: on-demand}\n", "1:29", "'on-demand' is not interrupted"),
        ("interrupt: {at: 4s, machine: 0}\n", "1:30", "'0' is not possible"),
        ("interrupt: {at: 4s, which: all}\n", "1:28", "'all' is not possible\nWrite running"),
        ("interrupt: {at: 4s, which: running, machine: 1}\n", "1:28", "say two things"),
        ("maintenance: {at: 4s, code: instance-reboot}\n", "1:29", "Write instance-stop or"),
        ("maintenance: 4s\n", "1:14", "is no table"),
        ("refuse: {type: g5.*}\n", "1:9", "names no error"),
        ("price: {from: 2m}\n", "1:8", "does not say by how much"),
        ("price: -2\n", "1:8", "is not possible"),
        ("s3: quick\n", "1:5", "'quick' is not possible\nWrite slow, fast."),
        ("throttle: 1\n", "1:11", "'1' is not possible"),
        ("quota: {gpus: 3}\n", "1:8", "has gpus, which is no quota"),
        ("clouds: [aws, azure]\n", "1:15", "'azure' is no cloud of the sandbox\nWrite aws or gcp"),
        ("clouds: [aws, aws]\n", "1:9", "names a cloud twice, or none"),
        ("clouds: []\n", "1:9", "names a cloud twice, or none"),
        ("outage: {store: gcs}\n", "1:17", "'gcs' is no store\nWrite `store: s3 or gs`"),
        ("outage: {from: 2s}\n", "1:9", "is no store"),
        ("quota: 8\n", "1:8", "is no table"),
        ("account: {policies: some}\n", "1:21", "'some' is not possible"),
        ("account: {image: maybe}\n", "1:18", "'maybe' is not possible"),
        ("- speed\n", "1:1", "script: this list is no table"),
        ("a: [\n", "2:1", "this is not YAML"),
        ("a: \t@\n", "1:4", "this is not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_line_column_value_and_remedy(
    tmp_path: Path, text: str, where: str, says: str
) -> None:
    with pytest.raises(SpecError) as raised:
        written(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path / 'w.yaml'}:{where}: ")
    assert says in str(raised.value)
    assert raised.value.remedy


@pytest.mark.parametrize("body", [b"\xff\xfe", b"# " + b"x" * (1 << 20)])
def test_what_is_no_script_at_all_is_refused(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "w.yaml").write_bytes(body)
    with pytest.raises(SpecError):
        read(tmp_path / "w.yaml")


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        read(tmp_path / "none.yaml")


def test_a_word_is_shown_in_part_when_it_is_long(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as raised:
        written(tmp_path, f"boot: {'x' * 1000}\n")
    assert len(str(raised.value)) < 300 + len(str(tmp_path))


def test_metadata_services_are_slow_or_fail_for_a_while(tmp_path: Path) -> None:
    said = weather(tmp_path, "metadata: [{delay: 2s}, {code: 500, from: 5s, until: 20s}]\n")
    assert said.metadata_faults == (MetadataFault(2.0), MetadataFault(0.0, 500, 5.0, 20.0))


@pytest.mark.parametrize(("said", "ahead_s"), [("+5m", 300.0), ("-90s", -90.0), ("+1.5h", 5400.0)])
def test_clocks_of_machines_are_off(tmp_path: Path, said: str, ahead_s: float) -> None:
    assert weather(tmp_path, f"clock: {said}\n").clock_ahead_s == ahead_s


@pytest.mark.parametrize("said", ["5m", "+soon", "+9000d", "+", "[1]"])
def test_a_clock_that_is_off_by_nothing_that_can_be_read_is_refused(
    tmp_path: Path, said: str
) -> None:
    with pytest.raises(SpecError, match="clock"):
        weather(tmp_path, f"clock: {said}\n")


def test_a_status_that_is_no_error_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="500"):
        weather(tmp_path, "metadata: {code: 200}\n")
