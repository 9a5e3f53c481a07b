"""What `offers` does: read the catalogue, look for what was asked, show it."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cloudwhale.cli.exits import Exit
from cloudwhale.cli.looking import desk_here, settings_here
from cloudwhale.cli.output import Paper, document_or
from cloudwhale.clock import SystemClock
from cloudwhale.control.catalogue import Catalogue, catalogue
from cloudwhale.control.catalogue.asking import Words, asked
from cloudwhale.control.supply import limits_of
from cloudwhale.control.this_host import with_this_host
from cloudwhale.model.units import Instant
from cloudwhale.planning.allowing import Limits, unmatched
from cloudwhale.planning.fit import refused
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.plausible import DAY_S, DROPPED
from cloudwhale.planning.searching import EVERY_S, Asked, Found, search
from cloudwhale.reporting.figures import counted
from cloudwhale.reporting.offers import Shown, offer_keys, offers_sheet, own_keys
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import NothingCanRunIt, StoreUnusable

ROWS = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of `offers`."""

    gpu: str | None
    cpu: str | None
    memory: str | None
    disk: str | None
    regions: tuple[str, ...]
    market: Literal["spot", "on-demand"] | None
    providers: tuple[str, ...]
    limit: int | None
    as_json: bool

    @property
    def words(self) -> Words:
        """Return what the machine must have, as it was typed."""
        return Words(
            self.gpu, self.cpu, self.memory, self.disk, self.regions, self.market, self.providers
        )

    @property
    def takes_own(self) -> bool:
        """Say whether machines of ours are among what was asked for."""
        return not self.regions and not self.providers and self.market is None


def offers(wanted: Wanted) -> int:
    """Show what has what was asked for; raise NothingCanRunIt when nothing does."""
    settings, now = settings_here(), SystemClock().now()
    question = asked(wanted.words)
    known = catalogue(settings, now)
    own, notes = _own(question, now) if wanted.takes_own else ((), [])
    gc.freeze()  # what was loaded lives to the end: it need not be looked through for garbage
    limits = limits_of(settings)
    found = search(known.offers, question, limits)
    if not own and not found.hits:
        raise nothing_fits(known, found, limits)
    shown = _shown(wanted, found, settings, now)
    notes = [*notes, *_notes(wanted, question, known, found, limits), *shown.notes]
    shown = Shown(own, shown.rows, now, shown.max_age_s, tuple(notes))
    document_or(
        wanted.as_json,
        lambda: _document(shown, question, found),
        lambda paper: _draw(paper, shown),
    )
    return Exit.DONE


def _draw(paper: Paper, shown: Shown) -> None:
    paper.sheet(offers_sheet(shown))


def _shown(wanted: Wanted, found: Found, settings: Settings, now: Instant) -> Shown:
    most = wanted.limit if wanted.limit is not None or wanted.as_json else ROWS
    rows, whole = found.hits[:most], len(found.hits)
    more = [f"{whole - len(rows):,} more: `--limit {whole}` shows all."] * (whole > len(rows))
    return Shown((), rows, now, settings.catalogue_max_age_days * DAY_S, tuple(more))


def _own(question: Asked, now: Instant) -> tuple[Sequence[Free], list[str]]:
    """Return the machines of ours that have it free now, and why they are not known."""
    try:
        with desk_here() as desk:
            world = with_this_host(desk, desk.store.world(now))
    except StoreUnusable as error:
        return (), [f"Your own machines are not shown: {error.says}."]
    nodes = [node for node in world.nodes.values() if node.owned]
    songs = free_capacity(nodes, world.jobs.values(), world.sightings)
    open_ = [song for song in songs.values() if refused(question.spec, song) is None]
    return sorted(open_, key=lambda song: song.node.id), []


def _notes(
    wanted: Wanted, question: Asked, known: Catalogue, found: Found, limits: Limits
) -> Sequence[str]:
    said = [
        f"useful: USD for {work_of(question)}, disk and address included, on spot also what is "
        f"done again by a job that saves every {EVERY_S / 60:.0f} min."
    ]
    if wanted.words.asks_for_no_machine:
        said.append("Machines without GPUs: `cloudwhale offers --cpu 8`.")
    said += [_kept_out(found)] * bool(found.kept_out)
    return [*said, *_strange(known, limits), *known.notes]


def work_of(question: Asked) -> str:
    """Return what is done in an hour that costs what stands below `useful`."""
    many = question.wants.gpu.count
    if question.reference is None:
        return "an hour"
    if many == 1:
        return f"what one {question.reference} does in an hour"
    return f"what {many} {question.reference} do in an hour"


def _strange(known: Catalogue, limits: Limits) -> Iterator[str]:
    """Yield a sentence for each limit that names what there is not."""
    for name, patterns in unmatched(known.offers, limits).items():
        words = ", ".join(map(repr, patterns))
        yield f"`{name}` has {words}, which no offer that is known matches."


def _kept_out(found: Found) -> str:
    parts = [f"{many:,} by `{name}`" for name, many in found.kept_out.items()]
    return f"Settings keep out {' and '.join(parts)}."


def nothing_fits(known: Catalogue, found: Found, limits: Limits) -> NothingCanRunIt:
    """Return why nothing has it: what the nearest offer lacks, or what keeps out those that do."""
    if found.kept_out:
        many = sum(found.kept_out.values())
        says = "1 offer has it, but your settings keep it out"
        if many > 1:
            says = f"{many:,} offers have it, but your settings keep all of them out"
        strange = "".join(f" {said}" for said in _strange(known, limits))
        return NothingCanRunIt(says, f"{_kept_out(found)}{strange} Change that, or ask for less.")
    if found.nearest is not None:
        counts = ", ".join(f"{code} {many:,}" for code, many in found.refused.items())
        near = found.nearest_offer or ""
        return NothingCanRunIt(
            f"no offer has it: {found.nearest.says} ({near}, the nearest)",
            f"{found.nearest.change[:1].upper()}{found.nearest.change[1:]}. Refused: {counts}.",
        )
    if not known.offers:
        return NothingCanRunIt("no offer is known at all", " ".join(known.notes))
    regions = sorted({f"{offer.provider}/{offer.region}" for offer in known.offers})
    lost = sum(known.counts[rule] for rule in DROPPED)
    dropped = f" {counted(lost, 'price')} dropped: `cloudwhale offers` says why." if lost else ""
    return NothingCanRunIt(
        "no offer lies where you look for it", f"Offers are known in {', '.join(regions)}.{dropped}"
    )


def _document(shown: Shown, question: Asked, found: Found) -> Mapping[str, Any]:
    return {
        "offers": [
            *(own_keys(free) for free in shown.own),
            *(offer_keys(row, shown.now) for row in shown.rows),
        ],
        "reference": question.reference,
        "left_out": {**found.refused, **found.kept_out},
        "notes": list(shown.notes),
    }
