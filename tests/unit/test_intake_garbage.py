"""Whatever a file holds, reading it gives jobs or one SpecError, in time."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from cloudwhale.control.intake import read_jobs
from cloudwhale.control.intake.keys import (
    CHECKPOINT,
    JOB,
    NIGHT,
    NOTIFY,
    RESOURCES,
    RETRY,
    WHERE,
)
from cloudwhale.control.intake.legacy import TASK
from cloudwhale.spi.errors import SpecError

KEYS = sorted(
    {"defaults", "jobs", "count", "model", "share", "max", "labels"}.union(
        CHECKPOINT, JOB, NIGHT, NOTIFY, RESOURCES, RETRY, TASK, WHERE
    )
)
SCALARS = st.sampled_from(
    """train a/b .. 1 0 -1 0.5 1.5 nan .inf 1e999 3h 0s 9999999d 16GiB 24GB.. ..80GB 80GB..24GB
    A100:2 A100 banana :2 ~ null true no "" '' . ../x /abs /data:ro s3://b/k 2026-12-01T08:00Z
    ~x 0..4 4..0 a..b 0001-01-01T00:00 9999-12-31T23:59+00:00 22:00..08:00 *a &a !x !!int << |
    spot SIGTERM preemption "\\0" ٣""".split()
) | st.text(max_size=20)
NODES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from(KEYS) | SCALARS, inner, max_size=6).map(
            lambda pairs: f"{{{', '.join(f'{key}: {value}' for key, value in pairs.items())}}}"
        )
    ),
    max_leaves=25,
)
FILES = st.lists(st.tuples(st.sampled_from(KEYS) | SCALARS, NODES), max_size=8).map(
    lambda pairs: "\n".join(f"{key}: {value}" for key, value in pairs)
)
WHOLE_FILES = FILES.map(lambda rest: f"name: train\ncommand: x\n{rest}")


def read(body: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "job.yaml")
        file.write_bytes(body)
        try:
            read_jobs(file, now=0.0)
        except SpecError as error:
            assert error.file == str(file)
            assert error.says and error.remedy
            assert (error.line or 0) >= 1 and (error.column or 0) >= 1


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_give_a_spec_error(body: bytes) -> None:
    read(body)


@settings(deadline=None)
@given(st.text("abn:-[]{}&*!|>'\"#%@`,?\t\n\r \\0~<é\u2028\x85\ufeff", max_size=60))
def test_random_yaml_gives_a_spec_error(text: str) -> None:
    read(text.encode())


@settings(deadline=None, max_examples=150)
@given(FILES | WHOLE_FILES | NODES)
def test_random_job_files_give_jobs_or_a_spec_error(text: str) -> None:
    read(text.encode("utf-8", "surrogatepass"))
