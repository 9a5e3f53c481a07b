"""The systemd unit of an agent, as `nodes add` writes it and as `infra/systemd` shows it."""

from collections.abc import Sequence

UNIT = """\
[Unit]
Description=cloudwhale agent of node {node}
Wants=network-online.target
After=network-online.target
# However often it fails: the mailbox may be away for hours.
StartLimitIntervalSec=0

[Service]
ExecStart={command}
# Credentials of a bucket, for example; the file may be missing.
EnvironmentFile=-{environment}
Restart=on-failure
RestartSec=5
# Another agent is this node: trying again does not help.
RestartPreventExitStatus=2
# Only the agent itself: jobs run on under their shims when it fails, and the next one adopts them.
KillMode=process
# Stopped, it saves its jobs first: 20 s of grace, and the last uploads.
TimeoutStopSec=60
# So that jobs can be given control groups of their own.
Delegate=yes
# A job that runs out of memory is no reason to stop the agent and all other jobs.
OOMPolicy=continue
TasksMax=infinity

[Install]
WantedBy={wanted_by}
"""


def unit(node: str, words: Sequence[str], *, system: bool = False) -> str:
    """Return the unit of a node's agent, of a user's systemd or of the system's."""
    return UNIT.format(
        node=node,
        command=" ".join(map(quoted, words)),
        environment="/etc/cloudwhale/agent.env" if system else "%E/cloudwhale/agent.env",
        wanted_by="multi-user.target" if system else "default.target",
    )


def quoted(word: str) -> str:
    """Return a word as systemd.service(5) reads it."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{word}"' if any(letter.isspace() for letter in word) or not word else word
