"""The commands about what can be rented: offers, and catalog with update."""

from enum import StrEnum
from typing import Annotated

import typer

from cloudwhale.cli.completing import gpu_words, provider_words, region_words
from cloudwhale.cli.words import AsJson, examples

# A command's parameters are its options, so they are as many as it has.

catalog = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples("cloudwhale catalog update", "cloudwhale catalog update --region us-east-1"),
)


class RentedMarket(StrEnum):
    """Markets as `--market` takes them."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


Regions = Annotated[
    list[str] | None,
    typer.Option(
        "--region", metavar="PATTERN", help="us-east-1, us-* or CLOUD/us-*; repeatable.",
        autocompletion=region_words,
    ),
]  # fmt: skip
Providers = Annotated[
    list[str] | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="This cloud alone; repeatable.",
        autocompletion=provider_words,
    ),
]


def offers(
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            metavar="GPUS",
            help="A100:2, 24GB..:1, 2: as in a job file.",
            autocompletion=gpu_words,
        ),
    ] = None,  # fmt: skip
    cpu: Annotated[str | None, typer.Option("--cpu", metavar="N", help="CPUs at least.")] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="At least, like 64GiB.")
    ] = None,
    disk: Annotated[
        str | None, typer.Option("--disk", metavar="SIZE", help="At least, like 500GiB.")
    ] = None,
    region: Regions = None,
    market: Annotated[RentedMarket | None, typer.Option("--market", help="This one alone.")] = None,
    provider: Providers = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", metavar="N", min=1, help="Rows; else 20, with --json all."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what can be rented, cheapest first.

    Cheapest is what an hour of work is expected to cost: price, disk and address, over the speed of
    the GPU beside the first model that is asked for (else an A100), and over the part of the time
    that a spot machine does not do again what it has lost. Looks at no network.
    """
    from cloudwhale.cli.offering import Wanted
    from cloudwhale.cli.offering import offers as do

    wanted = Wanted(
        gpu, cpu, memory, disk, tuple(region or ()), market.value if market else None,
        tuple(provider or ()), limit, as_json,
    )  # fmt: skip
    raise typer.Exit(do(wanted))


@catalog.callback()
def about_catalog() -> None:
    """Keep the prices of what can be rented new."""


@catalog.command(
    epilog=examples(
        "cloudwhale catalog update",
        "cloudwhale catalog update --provider CLOUD --region us-east-1 --region us-west-2",
        "cloudwhale catalog update --json | jq '.updates[] | {provider, dearer, cheaper}'",
    )
)
def update(region: Regions = None, provider: Providers = None, as_json: AsJson = False) -> None:
    """Read the prices of clouds anew and say what has changed.

    Each cloud's own public lists are read; what credentials or a key add is in docs/prices.md. Read
    are the regions that are named (here, else in `regions`), else those that ship. What cannot be
    read stays as it was; exit code 1 when a cloud could not be read at all.
    """
    from cloudwhale.cli.updating import Wanted, update_catalog

    wanted = Wanted(tuple(region or ()), tuple(provider or ()), as_json)
    raise typer.Exit(update_catalog(wanted))


def add_to(app: typer.Typer) -> None:
    """Add these commands, each with its examples."""
    app.command(
        epilog=examples(
            "cloudwhale offers --gpu A100:2",
            "cloudwhale offers --gpu 24GB.. --market spot --region 'us-*'",
            "cloudwhale offers --cpu 16 --memory 64GiB",
            "cloudwhale offers --gpu L4 --json | jq -r '.offers[0].id'",
        )
    )(offers)
    app.add_typer(catalog, name="catalog")
