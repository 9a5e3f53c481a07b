"""A trace is read, or what is wrong with it is named: file, line, column, value, remedy."""

import gzip
from pathlib import Path

import pytest
from makers import a_device, a_node

from cloudwhale.simulation.traces import Reading, Trace, TraceError, read
from cloudwhale.simulation.traces.named import file_of, nodes_of
from cloudwhale.simulation.traces.pods import pods_from

OWN = "job,submit_s,duration_s,gpus"
GOOD = f"{OWN}\na,0,60,1\nb,5,30.5,2\n"
HOST = a_node("host", cpu=8.0, devices=(a_device("gpu-0"), a_device("gpu-1")))


def a_trace(folder: Path, text: str | bytes, how: Reading | None = None) -> Trace:
    file = folder / "jobs.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(file, how)


def fault(folder: Path, text: str | bytes, how: Reading | None = None) -> str:
    with pytest.raises(TraceError) as raised:
        a_trace(folder, text, how)
    assert raised.value.remedy, "says what to do"
    return str(raised.value).replace(str(folder / "jobs.csv"), "jobs.csv")


# -- what is read ----------------------------------------------------------------------------


def test_a_users_own_trace_is_read_by_its_columns(tmp_path: Path) -> None:
    found = a_trace(
        tmp_path,
        "job,submit_s,duration_s,gpus,share,gpu_memory_gib,gpu_models,cpu,memory_gib,priority,"
        "project,name,estimate_s,reference,checkpoint_s,deadline_s,wait_max_s,value_of_time_usd_h\n"
        "a,3,60,1,0.5,10,A100|L4,2,8,80,nlp,train,90,A100-80GB,600,9000,120,2.5\n",
    )
    [one] = found.arrivals
    assert (one.at, one.job, one.work_s, one.spec.duration_s) == (3.0, "a", 60.0, 90.0)
    gpu = one.spec.resources.gpu
    assert (gpu.count, gpu.share, gpu.memory_gib.least) == (1, 0.5, 10.0)
    assert gpu.models == ("A100-40GB", "A100-80GB", "L4")
    assert (one.spec.resources.cpu, one.spec.resources.memory_gib) == (2.0, 8.0)
    assert (one.spec.priority, one.spec.project, one.spec.name) == (80, "nlp", "train")
    assert one.spec.checkpoint is not None and one.spec.checkpoint.every_s == 600.0
    assert (one.spec.deadline, one.spec.wait_max_s) == (9000.0, 120.0)
    assert (one.spec.reference, one.spec.value_of_time_usd_h) == ("A100-80GB", 2.5)


def test_what_is_left_out_or_empty_has_its_default(tmp_path: Path) -> None:
    [one] = a_trace(tmp_path, f"{OWN},share,priority\na,0,60,1,,\n").arrivals
    assert (one.spec.resources.gpu.share, one.spec.priority) == (1.0, 50)
    assert one.spec.duration_s == 60.0 and one.spec.checkpoint is None


@pytest.mark.parametrize("packed", [False, True])
def test_a_gzipped_file_a_byte_order_mark_and_blank_lines_change_nothing(
    tmp_path: Path, packed: bool
) -> None:
    text = ("\ufeff" + GOOD.replace("\n", "\r\n\r\n")).encode()
    assert [one.job for one in a_trace(tmp_path, gzip.compress(text) if packed else text).arrivals]
    assert a_trace(tmp_path, text).arrivals == a_trace(tmp_path, GOOD).arrivals


def test_a_header_alone_is_an_empty_trace(tmp_path: Path) -> None:
    assert a_trace(tmp_path, OWN).arrivals == ()


def test_only_the_first_jobs_are_read_when_so_many_are_asked_for(tmp_path: Path) -> None:
    text = GOOD + "c,not a time,1,1\n"
    assert [one.job for one in a_trace(tmp_path, text, Reading(most=2)).arrivals] == ["a", "b"]


def test_the_headers_of_public_traces_are_known(tmp_path: Path) -> None:
    philly = a_trace(tmp_path, "submit_s,duration_s,num_gpus,vc\n7,600.0,8,7f04ca\n")
    assert philly.format == "philly"
    assert philly.arrivals[0].spec.resources.gpu.count == 8
    assert philly.arrivals[0].spec.project == "7f04ca"
    burst = a_trace(tmp_path, "job_id,arrival_h,runtime_h,num_gpus\n0,0.5,2,4\n")
    assert (burst.arrivals[0].at, burst.arrivals[0].work_s) == (1800.0, 7200.0)


PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
)


def test_pods_become_jobs_by_time_and_those_that_never_ran_are_passed_over(tmp_path: Path) -> None:
    found = a_trace(
        tmp_path,
        PODS + "p-1,6000,12288,1,460,V100M16|G2,LS,Running,50,170,70\n"
        "p-2,1000,1024,0,0,,BE,Pending,10,90,\np-3,1000,1024,2,1000,,BE,Running,20,90,30\n",
    )
    assert [one.job for one in found.arrivals] == ["p-3", "p-1"]
    first = found.arrivals[1]
    assert (first.at, first.work_s, first.spec.resources.gpu.share) == (50.0, 100.0, 0.46)
    assert first.spec.resources.gpu.models == ("V100-16GB", "G2")
    assert first.spec.resources.memory_gib == 12.0
    assert found.skipped == {"never ran": 1}


# -- what is wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("c,9,nan,1", "jobs.csv:4:5: duration_s is 'nan'"),
        ("c,9,inf,1", "duration_s is 'inf'"),
        ("c,9,soon,1", "duration_s is 'soon'"),
        ("c,9,0,1", "jobs.csv:4:5: duration_s is 0"),
        ("c,9,-60,1", "duration_s is -60"),
        ("c,,60,1", "jobs.csv:4:3: submit_s is empty"),
        ("c,-1,60,1", "submit_s is -1"),
        ("c,9,1e308,1", "duration_s is 1e308"),
        ("c,9,1_000,1", "duration_s is '1_000'"),
        ("c,1e308,60,1", "jobs.csv:4:3: submit_s is 1e308"),
        ("c,9,60,1.5", "gpus is 1.5"),
        ("c,9,60,-1", "gpus is -1"),
        (",9,60,1", "jobs.csv:4:1: job is empty"),
        ("c\x1b[2J,9,60,1", "job is 'c\\x1b[2J'"),
        ("a,9,60,1", "job is 'a', as on line 2"),
        ("c,4,60,1", "submit_s is 4, before that of the row above"),
        ("c,9,60", "jobs.csv:4: has 3 fields, the header has 4"),
        ("c,9,60,1,7", "has 5 fields, the header has 4"),
        ('c,9,"60,1', "jobs.csv:4: is no line of CSV"),
        ('"c\n",9,60,1', "jobs.csv:4: is no line of CSV"),
        ("c\r,9,60,1", "jobs.csv:4:2: is no line of CSV: it holds a carriage return"),
        ("c,9,60,3", "job 'c' needs 3 GPUs on one node, host has 2 that suit"),
    ],
)
def test_a_bad_row_is_named_and_may_be_skipped(tmp_path: Path, row: str, says: str) -> None:
    text = f"{GOOD}{row}\nd,10,60,1\n"
    assert says in fault(tmp_path, text, Reading([HOST]))
    assert "--skip-bad" in fault(tmp_path, text, Reading([HOST]))
    found = a_trace(tmp_path, text, Reading([HOST], skip_bad=True))
    assert [one.job for one in found.arrivals] == ["a", "b", "d"]
    assert sum(found.skipped.values()) == row.count("\n") + 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("share", "0"), ("share", "1.1"), ("priority", "101"), ("cpu", "-1"), ("cpu", "many"),
        ("checkpoint_s", "0"), ("checkpoint_s", "1e-9"), ("estimate_s", "0"), ("gpu_models", "|"),
        ("cpu", "1e300"), ("reference", "abacus"), ("deadline_s", "nan"),
    ],
)  # fmt: skip
def test_a_column_that_may_be_left_out_is_checked_when_it_is_there(
    tmp_path: Path, column: str, value: str
) -> None:
    assert f"{column} is" in fault(tmp_path, f"{OWN},{column}\na,0,60,1,{value}\n")


def test_a_job_that_would_save_for_ever_is_named(tmp_path: Path) -> None:
    text = f"{OWN},checkpoint_s\na,0,1e9,1,1\n"
    assert "jobs.csv:2:11: checkpoint_s is 1, which is 1,000,000,000 saves" in fault(tmp_path, text)


@pytest.mark.parametrize("row", ["a,0,{},1", "{},0,nan,1", "{},0,60,3"])
def test_a_value_without_end_is_cut_so_that_the_sentence_is_seen(tmp_path: Path, row: str) -> None:
    text = f"{OWN}\n{row.format('9' * 5000)}\n"
    assert len(fault(tmp_path, text, Reading([HOST]))) < 400


def test_a_header_cannot_be_skipped_so_nobody_is_told_to(tmp_path: Path) -> None:
    for text in (b'"job,submit_s\n', gzip.compress(GOOD.encode())[:12], b"job\xff,submit_s\n"):
        assert "--skip-bad" not in fault(tmp_path, text)


def test_bytes_that_are_no_text_are_named_and_may_be_skipped(tmp_path: Path) -> None:
    text = GOOD.encode() + b"c\xff,9,60,1\n"
    assert "jobs.csv:4:2: byte 0xff is not UTF-8" in fault(tmp_path, text)
    assert a_trace(tmp_path, text, Reading(skip_bad=True)).skipped == {"not UTF-8": 1}


def test_a_gzip_that_is_cut_short_is_named_and_what_is_whole_may_be_used(tmp_path: Path) -> None:
    rows = "".join(f"j{n},{n},{7 * n % 97 + 1},1\n" for n in range(5000))
    whole = gzip.compress(f"{OWN}\n{rows}".encode())
    cut = whole[: len(whole) // 2]
    assert "the gzip file is cut short or damaged here" in fault(tmp_path, cut)
    found = a_trace(tmp_path, cut, Reading(skip_bad=True))
    assert 1000 < len(found.arrivals) < 5000 and found.skipped == {"cut short": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "jobs.csv:1: the file is empty"),
        ("\n\n", "jobs.csv:1: the file is empty"),
        ("job,submit_s,gpus\n", "the header has no column duration_s"),
        ("a,b\n", "no column job and no submit_s and no duration_s and no gpus; it has a, b"),
        (f"{OWN},prioritty\n", "unknown column 'prioritty'"),
        (f"{OWN},gpus\n", "has the column 'gpus' twice"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "this list of pods has no times"),
        ("job;submit_s;duration_s;gpus\n", "jobs.csv:1: semicolons separate the columns"),
        ("job\tsubmit_s\tduration_s\tgpus\n", "jobs.csv:1: tabs separate the columns"),
        (f"{OWN},\n", "jobs.csv:1: column 5 of the header has no name"),
        (f"\n{OWN},,\n", "jobs.csv:2: column 5 of the header has no name"),
        (",".join(f"c{n}" for n in range(5000)), "jobs.csv:1: has 5,000 columns"),
        (GOOD.replace("\n", "\r"), "jobs.csv:1:29: is no line of CSV: it holds a carriage return"),
        (b"job\xff,submit_s\n", "is not UTF-8"),
        (b"x" * (1 << 21), "is longer than 1,048,576 bytes"),
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_a_file_that_is_no_trace_is_refused_whatever_is_skipped(
    tmp_path: Path, text: str | bytes, says: str, skip: bool
) -> None:
    assert says in fault(tmp_path, text, Reading(skip_bad=skip))


@pytest.mark.parametrize("name", ["nowhere.csv", "."])
def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(TraceError, match="no such file|is a directory"):
        read(tmp_path / name)


# -- traces that have a name -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["openb", "philly", "burst"])
def test_a_named_trace_that_is_not_there_says_where_to_get_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(TraceError, match=r"CLOUDWHALE_TRACES.*not set(.|\n)*github\.com"):
        file_of(name, {})
    with pytest.raises(TraceError, match=r"is not there(.|\n)*github\.com"):
        file_of(name, {"CLOUDWHALE_TRACES": str(tmp_path)})


def test_a_named_trace_is_found_plain_or_gzipped_and_by_variant(tmp_path: Path) -> None:
    for name in ("openb_pod_list_gpuspec33.csv.gz", "burst_synth500_load1.csv"):
        (tmp_path / name).write_text("")
    there = {"CLOUDWHALE_TRACES": str(tmp_path)}
    assert file_of("openb:gpuspec33", there).name == "openb_pod_list_gpuspec33.csv.gz"
    assert file_of("burst", there).name == "burst_synth500_load1.csv"
    for word in ("burst:large", "burst:", "synthetic:large"):
        with pytest.raises(TraceError, match="has no variants"):
            file_of(word, there)
        with pytest.raises(TraceError, match="has no variants"):
            nodes_of(word, there)


def test_named_traces_are_played_on_what_their_papers_say(tmp_path: Path) -> None:
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,96000,524288,8,G2\n"
    )
    there = {"CLOUDWHALE_TRACES": str(tmp_path)}
    first, second = nodes_of("openb", there)
    assert (first.facts.cpu, first.facts.memory_gib) == (64.0, 256.0)
    assert [device.model for device in first.facts.devices] == ["P100", "P100"]
    assert [device.model for device in second.facts.devices] == ["G2"] * 8
    assert [len(node.facts.devices) for node in nodes_of("burst", {})] == [8, 8, 8, 8]
    assert [len(node.facts.devices) for node in nodes_of("philly", {})] == [480]


# -- openb's lists of pods and nodes ---------------------------------------------------------

SHAPES = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("a,1000,10,1,2000\n", "pods.csv:2:13: gpu_milli is 2000"),
        ("a,1000,10,1,0\n", "gpu_milli is 0"),
        ("a,1e308,10,1,500\n", "cpu_milli is 1e308"),
        ("\na,1000,10,1,500\na,1000,10,1,500\n", "pods.csv:4:1: name is 'a', as on line 3"),
        ("a,1000,10,1\n", "pods.csv:2: has 4 fields, the header has 5"),
    ],
)
def test_a_bad_pod_is_named_and_nobody_is_told_to_skip_it(
    tmp_path: Path, rows: str, says: str
) -> None:
    file = tmp_path / "pods.csv"
    file.write_text(SHAPES + rows)
    with pytest.raises(TraceError) as raised:
        pods_from(file)
    assert says in str(raised.value) and "--skip-bad" not in str(raised.value)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("n,1,1,1,T4\n\nn,1,1,1,T4\n", "4:1: sn is 'n', as on line 2"),
        ("n,1,1,100000,T4\n", "gpu is 100000"),
        ("n,1e300,1,1,T4\n", "cpu_milli is 1e300"),
    ],
)
def test_a_bad_node_of_a_list_is_named(tmp_path: Path, rows: str, says: str) -> None:
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\n" + rows
    )
    with pytest.raises(TraceError, match=says):
        nodes_of("openb", {"CLOUDWHALE_TRACES": str(tmp_path)})
