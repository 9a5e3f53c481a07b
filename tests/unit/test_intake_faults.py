"""Job files that are wrong: each error names the line, the column, the value and the remedy."""

import os
from pathlib import Path

import pytest

from cloudwhale.control.intake import Overrides, budget_flag, env_flag, read_jobs
from cloudwhale.spi.errors import SpecError

NOW = 1_790_000_000.0
HEAD = "name: train\ncommand: python train.py\n"


def refused(folder: Path, text: str | bytes, overrides: Overrides | None = None) -> SpecError:
    file = folder / "job.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SpecError) as caught:
        read_jobs(file, now=NOW, overrides=overrides)
    assert caught.value.file == str(file)
    assert caught.value.remedy
    return caught.value


# The third line of a file that begins with HEAD; the column of what is wrong; what is said of it.
THIRD_LINE = [
    ("comand: x", 1, "unknown key 'comand'", "Did you mean `command`?"),
    ("gpu: 1", 1, "unknown key 'gpu'", "under `resources`"),
    ("grace: 10s", 1, "unknown key 'grace'", "under `checkpoint`"),
    ("window: 22:00..08:00", 1, "unknown key 'window'", "`jobs: [...]`"),
    ("zzzz: 1", 1, "unknown key 'zzzz'", "known here: name, project"),
    ("resources: {gpus: 1}", 13, "resources: unknown key 'gpus'", "Did you mean `gpu`?"),
    ("name: again", 1, "'name' stands here a second time", "on line 1"),
    ("resources:", 11, "resources: it has no value", "remove the line"),
    ("resources: 4", 12, "keys with values", "gpu, cpu"),
    ("resources: {cpu: [4]}", 18, "resources.cpu: a single value", "Write one value"),
    ("resources: {cpu: -4}", 18, "'-4' is not above 0", "a number above 0, like 4"),
    ("resources: {cpu: 0}", 18, "'0' is out of bounds", "from 0.01"),
    ("resources: {cpu: nan}", 18, "'nan' is not a number", "digits"),
    ("resources: {cpu: ٣}", 18, "is not a number", "digits"),
    ("resources: {memory: 16}", 21, "'16' is not a size", "16GB"),
    ("resources: {memory: 16XB}", 21, "'XB' in '16XB' is not a unit of size", "16GB"),
    ("resources: {memory: 16gib}", 21, "'gib'", "Did you mean 16GiB?"),
    ("resources: {memory: -16GB}", 21, "'-16GB' is not a size", "16GB"),
    ("resources: {memory: 0GB}", 21, "'0GB' is not above 0", "above 0"),
    ("resources: {memory: 8GB..16GB}", 21, "has an upper end", "the least"),
    ("resources: {disk: 999999999999TB}", 19, "more than any machine has", "smaller"),
    ("resources: {network: 1Gb}", 22, "'Gb' in '1Gb' is not a unit of rate", "1Gbps"),
    ("resources: {gpu: 1.5}", 18, "'1.5' is not above 0 and at most 1", "`count`"),
    ("resources: {gpu: B100:1}", 18, "no GPU model is called 'B100'", "Did you mean"),
    ("resources: {gpu: 'A100::2'}", 18, "an empty part", "A100:2"),
    ("resources: {gpu: '2:2'}", 18, "says count twice", "A100:2"),
    ("resources: {gpu: 2..1}", 18, "ends before it begins", "1..2"),
    ("resources: {gpu: 2..}", 18, "leaves an end open", "both ends"),
    ("resources: {gpu: 9999}", 18, "'9999' is out of bounds", "1024"),
    ("resources: {gpu: 80GB..24GB}", 18, "ends before it begins", "24GB..80GB"),
    ("resources: {gpu: {share: 0}}", 26, "share of '0'", "fraction like 0.5"),
    ("resources: {gpu: 'L4:80GB'}", 18, "L4 has 24GB, and 80GB.. is asked for", "less memory"),
    ("reference: banana", 12, "no GPU model is called 'banana'", "Known: "),
    ("duration: 3", 11, "'3' is not a time", "90s, 10m, 3h, 2d"),
    ("duration: 3 weeks", 11, "'3 weeks' is not a time", "90s"),
    ("duration: 0s", 11, "'0s' is not above 0", "above 0"),
    ("duration: 99999d", 11, "more than ten years", "shorter"),
    ("max_duration: 1:30", 15, "'1:30' is not a time", "90s"),
    ("deadline: tomorrow", 11, "'tomorrow' is not a moment", "2026-12-01T08:00+01:00"),
    ("deadline: 0h", 11, "'0h'", "above 0"),
    ("deadline: 5 weeks", 11, "'5 weeks' is not a time", "3h"),
    ("deadline: 2026-12-01", 11, "not a moment", "offset"),
    ("deadline: 2026-13-01T08:00Z", 11, "month must be in 1..12", "calendar"),
    ("deadline: 2020-12-01T08:00Z", 11, "the deadline has passed", "later one"),
    ("priority: 101", 11, "'101' is out of bounds", "from 0 to 100"),
    ("priority: -1", 11, "'-1' is not a whole number", "digits"),
    ("priority: 1.5", 11, "'1.5' is not a whole number", "digits"),
    ("nodes: 0", 8, "'0' is out of bounds", "from 1"),
    ("preemptible: maybe", 14, "neither true nor false", "true or false"),
    ("market: cheap", 9, "'cheap' is not known here", "auto, spot, on-demand, local"),
    ("budget: -5", 9, "'-5' is not an amount of money", "dollars"),
    ("budget: .nan", 9, "'.nan' is not an amount of money", "dollars"),
    ("budget: 50EUR", 9, "'50EUR' is not in US dollars", "write 50"),
    ("budget: £50", 9, "'£50' is not in US dollars", "write 50"),
    ("budget: 50 USD", 9, "'50 USD' is not an amount of money", "in digits"),
    ("budget: inf", 9, "'inf' is not an amount of money", "dollars"),
    ("budget: 0", 9, "a budget of 0 is not above 0", "Leave it out"),
    ("budget: 0.0000001", 9, "is not above 0", "Leave it out"),
    ("budget: 99999999999", 9, "more than a billion", "smaller"),
    ("value_of_time_usd_h: -1", 22, "'-1' is not above 0", "above 0"),
    ("value_of_time_usd_h: 1e999", 22, "is not above 0", "above 0"),
    ("env: {1A: x}", 7, "'1A' cannot be the name of a variable", "letters"),
    ("env: {CLOUDWHALE_HOME: x}", 7, "one of cloudwhale's own", "another name"),
    ("env: {A: }", 10, "env.A: it has no value", "''"),
    ("env: {A: [1]}", 10, "env.A: a single value is wanted here", "one value"),
    ('env: {A: "a\\0b"}', 10, "zero byte", "Remove"),
    ("env: [A]", 6, "keys with values are wanted", "{key: value}"),
    ("secrets: [HF TOKEN]", 11, "'HF TOKEN' cannot be the name", "letters"),
    ("image: 'python 3'", 8, "cannot be a container image", "registry/name:tag"),
    ("image: 'ubuntu;reboot'", 8, "cannot be a container image", "registry/name:tag"),
    ("image: $(reboot)", 8, "cannot be a container image", "registry/name:tag"),
    ("image: -v/:/host", 8, "cannot be a container image", "registry/name:tag"),
    ("image: Ubuntu:24.04", 8, "cannot be a container image", "small letters"),
    ("mounts: {/data: /data:ro}", 9, "cannot be given /data read-only", "`image`"),
    ("mounts: {/data: /corpus}", 9, "cannot be given /data as /corpus", "`image`"),
    ("workdir: nowhere", 10, "'nowhere' does not exist", "Make it"),
    ("workdir: ~nobody-here/x", 10, "does not exist", "Make it"),
    ("workdir: " + "x" * 300, 10, "does not exist", "Make it"),
    ("workdir: job.yaml", 10, "'job.yaml' is not a folder", "Make it"),
    ("mounts: {data: /data}", 10, "'data' is not an absolute path", "Begin with `/`"),
    ("mounts: {/data: /data:rx}", 17, "'/data:rx' is not a mount point", "/data:ro"),
    ("mounts: {/a/../etc: /x}", 10, "is not an absolute path", "without `..`"),
    ("checkpoint: {path: /abs}", 20, "'/abs' lies outside", "relative"),
    ("checkpoint: {path: a/../../b}", 20, "lies outside the working directory", "without `..`"),
    ("checkpoint: {path: .}", 20, "the working directory itself", "Name a folder"),
    ("checkpoint: {path: ~/c}", 20, "lies outside", "relative"),
    ("checkpoint: {signal: SIGKILL}", 22, "'SIGKILL' is not known", "SIGTERM"),
    ("checkpoint: {every: 0s}", 21, "not above 0", "above 0"),
    ("checkpoint: {keep: 0}", 20, "out of bounds", "from 1"),
    ("retry: {on: [bad-luck]}", 14, "'bad-luck' is not known", "preemption, node-loss"),
    ("retry: {max: many}", 14, "'many' is not a whole number", "digits"),
    ("outputs: [../x]", 11, "lies outside", "relative"),
    ("inputs: [corpus]", 10, "'corpus' is not an address", "s3://"),
    ("inputs: [ftp://a/b]", 10, "'ftp://a/b' is not an address", "s3, gs, https"),
    ("inputs: ['s3:///b']", 10, "it names no bucket", "Correct"),
    ("inputs: [https://a.b/c, file:///no/such]", 25, "does not exist on this host", "Make it"),
    ("inputs: ['s3://a/b#c']", 10, "only `sha256=` or `md5=`", "Correct"),
    ("inputs: ['s3://a/b#md5=12']", 10, "32 hexadecimal digits, not 2", "Correct"),
    ("inputs: ['https://me:pw@a.b/c']", 10, "a name or a password", "Correct"),
    ("inputs: [s3://a/x, s3://b/x/]", 20, "would both be called x", "Rename one"),
    ("notify: {on: [lunch]}", 15, "'lunch' is not known", "completed"),
    ("notify: {webhook: ftp://x}", 19, "is not an address", "https://"),
    ("notify: {webhook: http://hooks.example/x}", 19, "anybody on the way", "https://"),
    ("notify: {webhook: https://ann:pw@hooks.example/x}", 19, "a name or a password", "https://"),
    ("after: [../x]", 9, "cannot be a name", "letters, digits"),
    ("after: train", 8, "train → train", "out of `after`"),
    ("array: {}", 8, "names variables", "seed: 0..4"),
    ("array: {seed: []}", 15, "array.seed: it has no values", "at least one"),
    ("array: {seed: 4..0}", 9, "ends before it begins", "0..4"),
    ("array: {seed: a..b}", 9, "not a range of whole numbers", "0..4"),
    ("array: {seed: [1, 1]}", 15, "stands here twice", "differ"),
    ("array: {seed: 0..99999}", 9, "more than 10,000 values", "several files"),
    ("array: {a: 0..999, b: 0..99}", 8, "100,000 members", "several files"),
    ("array: {CLOUDWHALE_X: 0..1}", 9, "one of cloudwhale's own", "another name"),
    ("speeds: {A100: 0}", 16, "'0' is not above 0", "above 0"),
    ("speeds: {banana: 1}", 10, "no GPU model is called 'banana'", "Known"),
    ("wait: 2h", 7, "keys with values", "max"),
    ("<<: {a: b}", 1, "merging", "defaults"),
    ("1: x", 1, "the key '1' is not a word", "quotes"),
    ("? [a]\n: b", 3, "a key must be a word", "key: value"),
    ("~: x", 1, "the key '~' is not a word", "quotes"),
    ("setup: !run x", 8, "the tag !run is not understood", "Remove"),
    ("setup: *gone", 8, "*gone names nothing", "&gone"),
    ("setup: &a [*a]", 12, "stands inside what it names", "Write the values out"),
    ("setup: 'open", 8, "this is not YAML", "quotes"),
    ("setup: a\x07b", 9, "U+0007", "Remove"),
    ("setup: ''", 8, "it is empty", "leave the key out"),
    ("--- \nname: b", 1, "a second document", "jobs: [...]"),
]


@pytest.mark.parametrize(
    ("line", "column", "says", "remedy"), THIRD_LINE, ids=[case[0] for case in THIRD_LINE]
)
def test_a_wrong_line_is_named(
    tmp_path: Path, line: str, column: int, says: str, remedy: str
) -> None:
    error = refused(tmp_path, HEAD + line + "\n")
    assert says in error.says
    assert remedy in error.remedy
    assert (error.line, error.column) == (3, column)
    assert str(error).startswith(f"{error.file}:{error.line}:{column}: ")


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("command: x\n", 1, 1, "the job has no `name`"),
        ("name: x\n", 1, 1, "the job has no `command`"),
        ("name: a/b\ncommand: x\n", 1, 7, "'a/b' cannot be a name"),
        ("name: ..\ncommand: x\n", 1, 7, "'..' cannot be a name"),
        ("name: " + "x" * 64 + "\ncommand: x\n", 1, 7, "cannot be a name"),
        ("just words\n", 1, 1, "this is not a job file"),
        ("jobs: []\n", 1, 7, "a list of jobs is wanted"),
        ("jobs: {a: b}\n", 1, 7, "a list of jobs is wanted"),
        ("jobs:\n- just words\n", 2, 3, "a job is keys with values"),
        ("jobs: [{name: a, command: b}]\ndefaults: 4\n", 2, 11, "defaults: keys with values"),
        ("jobs: [{name: a, command: b}]\nwindow: 8..9\n", 2, 9, "not a window of hours"),
        ("jobs: [{name: a, command: b}]\nunfinished: weep\n", 2, 13, "'weep' is not known"),
        ("jobs: [{name: a, command: b}]\ncommand: x\n", 2, 1, "unknown key 'command'"),
        ("defaults: {cpu: 1}\njobs: [{name: a, command: b}]\n", 1, 12, "unknown key 'cpu'"),
        ("", 1, 1, "the file is empty"),
        ("# nothing\n", 1, 1, "the file is empty"),
        ("name: a\nenv:\n\tA: b\n", 3, 1, "a tab cannot indent YAML"),
        ("name: a\nenv: {A: b\n", 2, 6, "this is not YAML"),
        ("name: a\nenv: {A: 'b", 2, 10, "this is not YAML"),
        ("name: a\n  command: b\n", 2, 10, "this is not YAML"),
        ("[" * 100, 1, 33, "nested more than 32 deep"),
    ],
)
def test_a_wrong_shape_is_named(
    tmp_path: Path, text: str, line: int, column: int, says: str
) -> None:
    error = refused(tmp_path, text)
    assert (error.line, error.column) == (line, column)
    assert says in error.says


def test_an_alias_bomb_is_refused_without_going_off(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    error = refused(tmp_path, "\n".join(rows))
    assert "the aliases of this file stand for more than 100,000 values" in error.says
    assert "defaults" in error.remedy
    assert (error.line or 0) > 1


def test_a_file_of_ten_megabytes_is_not_even_read(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(10_000_000)
    file.chmod(0)
    with pytest.raises(SpecError, match=r"10\.0 MB and was not read.*5 MB at most"):
        read_jobs(file, now=NOW)


def test_bytes_that_are_not_utf_8_are_named(tmp_path: Path) -> None:
    error = refused(tmp_path, b"name: a\ncommand: caf\xe9\n")
    assert (error.line, error.column) == (2, 13)
    assert "0xe9" in error.says and "UTF-8" in error.remedy


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="is a folder"):
        read_jobs(tmp_path, now=NOW)
    with pytest.raises(SpecError, match="there is no such file"):
        read_jobs(tmp_path / "gone.yaml", now=NOW)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecError, match="is not a file"):
        read_jobs(tmp_path / "pipe", now=NOW)
    with pytest.raises(SpecError, match="cannot be read"):
        read_jobs(tmp_path / ("x" * 300), now=NOW)


def test_jobs_that_wait_for_each_other_are_refused(tmp_path: Path) -> None:
    text = """\
jobs:
- {name: a, command: x, after: [elsewhere, b]}
- {name: b, command: x, after: [c]}
- {name: c, command: x, after: [a]}
"""
    error = refused(tmp_path, text)
    assert "a → b → c → a" in error.says
    assert (error.line, error.column) == (2, 32)


def test_a_chain_of_a_thousand_jobs_is_no_circle(tmp_path: Path) -> None:
    rows = [f"- {{name: j{n}, command: x, after: [j{n + 1}]}}" for n in range(1000)]
    (tmp_path / "job.yaml").write_text("jobs:\n" + "\n".join(rows))
    assert len(read_jobs(tmp_path / "job.yaml", now=NOW).specs) == 1000


def test_a_long_spot_job_that_saves_nothing_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, HEAD + "duration: 2h\nmarket: spot\n")
    assert "more than an hour (7200 s) without `checkpoint`" in error.says
    assert "--no-checkpoint-ok" in error.remedy
    assert (error.line, error.column) == (4, 9)
    asked = refused(tmp_path, HEAD + "duration: 2h\n", Overrides(market="spot"))
    assert "without `checkpoint`" in asked.says


def test_a_limit_below_what_is_expected_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, HEAD + "duration: 3h\nmax_duration: 1h\n")
    assert "3600 s < 10800 s" in error.says
    assert (error.line, error.column) == (4, 15)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("env: {A: x}\nsecrets: [A]", "secrets: A is in `env` too"),
        ("env: {A: x}\narray: {A: 0..1}", "array: A is in `env` too"),
        ("secrets: [A]\narray: {A: 0..1}", "secrets: A is in `array` too"),
    ],
)
def test_a_variable_has_one_source(tmp_path: Path, text: str, says: str) -> None:
    error = refused(tmp_path, HEAD + text)
    assert says in error.says and "one place" in error.remedy


def test_a_mistake_in_the_defaults_is_named_there(tmp_path: Path) -> None:
    error = refused(tmp_path, "defaults:\n  priority: 500\njobs:\n- {name: a, command: x}\n")
    assert (error.line, error.column) == (2, 13)


def test_more_jobs_than_a_store_takes_are_refused(tmp_path: Path) -> None:
    one = "- {name: a, command: x, array: {i: 0..4999}}\n"
    error = refused(tmp_path, "jobs:\n" + one * 3)
    assert "more than 10,000 jobs" in error.says
    assert error.line == 4


def test_flags_are_refused_in_the_words_of_the_file() -> None:
    assert budget_flag("50") == 50_000_000
    assert env_flag(["A=b=c", "B="]) == {"A": "b=c", "B": ""}
    for wrong in ("-5", "nan", "50 EUR", ""):
        with pytest.raises(SpecError, match="--budget"):
            budget_flag(wrong)
    for wrong in ("A", "=b", "1A=b"):
        with pytest.raises(SpecError, match="--env"):
            env_flag([wrong])
