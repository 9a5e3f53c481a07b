"""An agent is killed while it fetches what a job reads, and its successor goes on where it was."""

import hashlib
from pathlib import Path

from live_agent import LiveAgent, a_start, until
from small_web import Web, serving, span_of

BODY = hashlib.shake_128(b"corpus").digest(1 << 20) * 200
SHA256 = hashlib.sha256(BODY).hexdigest()
UNDER_WAY = 48 << 20
"""Of eight connections: what was sent and had not arrived."""


def asked_bytes(web: Web) -> int:
    spans = [span_of(asked["Range"], len(BODY)) for asked in web.headers if "Range" in asked]
    return sum(end - first for first, end in spans)


def test_a_killed_agents_transfer_of_200_mb_goes_on_where_it_was(agent: LiveAgent) -> None:
    with serving() as web:
        web.serve("/corpus.bin", BODY, ranges=True, slow_s=0.5)
        web.headers_of["/corpus.bin"] = {"ETag": '"one"'}
        agent.start()
        url = f"{web.url}/corpus.bin#sha256={SHA256}"
        agent.post(a_start(command="sha256sum < $CLOUDWHALE_INPUT_DIR/*/*", inputs=(url,)))
        until(lambda: web.sent_bytes > len(BODY) / 3, "a third of it was sent")
        agent.kill()
        came = web.sent_bytes
        assert came < len(BODY), "it was killed in the middle"
        web.headers.clear()
        agent.start()
        assert agent.ended().exit_code == 0
        assert asked_bytes(web) <= len(BODY) - came + UNDER_WAY
    assert agent.log().split()[0].decode() == SHA256


def test_an_input_that_is_not_what_the_job_file_says_starts_no_job(
    agent: LiveAgent, tmp_path: Path
) -> None:
    (tmp_path / "a.bin").write_bytes(b"words")
    agent.start()
    url = f"{(tmp_path / 'a.bin').as_uri()}#sha256={'0' * 64}"
    agent.post(a_start(command="true", inputs=(url,)))
    ended = agent.ended()
    assert ended.how == "inputs-refused"
    assert "is not what the job file says" in ended.says


def test_a_mount_that_is_gone_is_named_before_the_job_starts(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="true", mounts={"/no/such/data": "/no/such/data"}))
    ended = agent.ended()
    assert ended.how == "start-failed"
    assert "/no/such/data is not on this machine" in ended.says
