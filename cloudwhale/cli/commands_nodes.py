"""The commands about machines: nodes, with add, drain, undrain and remove; agent."""

from pathlib import Path
from typing import Annotated

import typer

from cloudwhale.cli.completing import node_words
from cloudwhale.cli.words import AsJson, examples

# A command's parameters are its options, so they are as many as it has.

nodes = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
    epilog=examples(
        "cloudwhale nodes",
        "cloudwhale nodes --json | jq .nodes",
        "cloudwhale nodes add ssh://ada@gpu7",
        "cloudwhale nodes drain gpu7",
    ),
)

NodeWord = Annotated[
    str, typer.Argument(metavar="NAME", help="A node's name.", autocompletion=node_words)
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device", metavar="TEXT", help='Stand-ins for GPUs: "2x RTX4090 24GB"; repeatable.'
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=VALUE", help="What jobs may ask for; repeatable."),
]
Cpu = Annotated[float | None, typer.Option("--cpu", help="CPUs that jobs may use; else all.")]
MemoryGib = Annotated[
    float | None, typer.Option("--memory-gib", help="Memory that jobs may use; else all.")
]


@nodes.callback()
def list_nodes(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the machines and what runs there; add some, remove some."""
    if context.invoked_subcommand is None:
        from cloudwhale.cli.looking import nodes as do

        raise typer.Exit(do(as_json))


@nodes.command(
    epilog=examples(
        "cloudwhale nodes add ssh://ada@gpu7",
        "cloudwhale nodes add ssh://ada@gpu7:2222 --dry-run",
        "cloudwhale nodes add ssh://gpu8 --mailbox-path /mnt/cloudwhale --label rack=b",
    )
)
def add(
    address: Annotated[str, typer.Argument(metavar="ssh://USER@HOST[:PORT]")],
    node: Annotated[
        str | None, typer.Option("--node", metavar="NAME", help="Its name; else its host name.")
    ] = None,
    mailbox_path: Annotated[
        str | None,
        typer.Option("--mailbox-path", metavar="DIR", help="Where our mailbox is mounted there."),
    ] = None,
    home: Annotated[
        str | None,
        typer.Option("--home", metavar="DIR", help="Its state there; else the data folder."),
    ] = None,
    device: Devices = None,
    label: Labels = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look, say what would be done, change nothing.")
    ] = False,
) -> None:
    """Make another own server a node, by ssh.

    The agent is installed and started there, and waited for. Your own ssh is used, with its
    configuration, keys and known hosts. The mailbox must be one that both reach: a shared folder,
    or s3://. The same command again upgrades and restarts the agent; jobs run on meanwhile.
    """
    from cloudwhale.cli.adding import Wanted
    from cloudwhale.cli.adding import add as do

    wanted = Wanted(
        address, node, mailbox_path, home, tuple(device or ()), tuple(label or ()), dry_run
    )
    raise typer.Exit(do(wanted))


@nodes.command(epilog=examples("cloudwhale nodes drain gpu7"))
def drain(name: NodeWord, as_json: AsJson = False) -> None:
    """Give a node no new jobs; what runs there ends as it would."""
    from cloudwhale.cli.draining import drain as do

    raise typer.Exit(do(name, as_json))


@nodes.command(epilog=examples("cloudwhale nodes undrain gpu7"))
def undrain(name: NodeWord, as_json: AsJson = False) -> None:
    """Give a node jobs again."""
    from cloudwhale.cli.draining import undrain as do

    raise typer.Exit(do(name, as_json))


@nodes.command(
    epilog=examples("cloudwhale nodes remove gpu7", "cloudwhale nodes remove gpu7 --force")
)
def remove(
    name: NodeWord,
    force: Annotated[
        bool, typer.Option("--force", help="Stop what runs there first, checkpoint first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count on a node no more; its agent is told to leave.

    Refused while jobs are there, unless forced: they are stopped, saved, and start elsewhere.
    """
    from cloudwhale.cli.draining import remove as do

    raise typer.Exit(do(name, force, as_json))


def agent(
    mailbox: Annotated[
        str | None,
        typer.Option("--mailbox", metavar="URL", help="Where it meets its controller."),
    ] = None,
    node: Annotated[
        str | None, typer.Option("--node", metavar="NAME", help="Its name; else the host name.")
    ] = None,
    home: Annotated[
        Path | None,
        typer.Option("--home", metavar="DIR", help="Its state; else the user's data folder."),
    ] = None,
    device: Devices = None,
    label: Labels = None,
    cpu: Cpu = None,
    memory_gib: MemoryGib = None,
) -> None:
    """Run this machine's agent in the foreground.

    On Ctrl-C or SIGTERM its jobs are saved and stopped, and it leaves. Its controller elsewhere
    finds it by the mailbox that both reach: a shared folder or a bucket. A systemd unit is in
    infra/systemd; `cloudwhale nodes add ssh://HOST` installs one by ssh.
    """
    from cloudwhale.cli.joining import Wanted
    from cloudwhale.cli.joining import agent as do

    wanted = Wanted(mailbox, node, home, tuple(device or ()), tuple(label or ()), cpu, memory_gib)
    raise typer.Exit(do(wanted))


def add_to(app: typer.Typer) -> None:
    """Add these commands, each with its examples."""
    app.add_typer(nodes, name="nodes")
    app.command(
        epilog=examples(
            "cloudwhale agent --mailbox s3://lab/cloudwhale",
            "cloudwhale agent --mailbox file:///mnt/cloudwhale --node gpu7 --label rack=b",
        )
    )(agent)
