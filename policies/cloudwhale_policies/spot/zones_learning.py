"""What was seen of zones, made into rates at which their spells end.

A rate for each bracket of ages is pooled over all zones, a factor for each zone follows its last
days. Where looks are rare, ages say little: there the ends that were seen are compared with those
that somebody would see who looked as rarely at the pool.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cloudwhale.model.units import Seconds
from cloudwhale_policies.spot.lives import AGES_H, HOUR_S, Lives, Rates, Spell, Spells, prior
from cloudwhale_policies.spot.zones_chains import ON_YOUNG, Chain

PRIOR_ENDS = 3.0
"""Ends in a bracket, and of a zone, after which what was seen weighs as much as the prior."""
FORGETS_H = 72.0
"""Half-life of what a zone's factor is made of: capacity comes and goes in days."""


@dataclass(frozen=True, slots=True, eq=False)
class _Tally:
    """What was seen of a zone's spells, all on or all off; late: less the longer ago."""

    ends: Rates
    """By bracket of ages, where looks were frequent; so the hours."""
    hours: Rates
    late_ends: float
    """Of all spells."""
    late_hours: Rates
    rare_looks: float
    """Late ones, where looks were rare."""
    rare_gap_h: float
    """From one of them to the next."""


def learned(spells: Spells, sites: Sequence[str], now_s: Seconds) -> Mapping[str, Lives]:
    """Return by site how its spells end, as far as is known at a time."""
    tallies = {
        site: [_tally(spells.by_site.get(site, ()), now_s, is_on=kind) for kind in (False, True)]
        for site in sites
    }
    pooled = [_pooled([both[kind] for both in tallies.values()]) for kind in (False, True)]
    chain = Chain(Lives(*pooled))
    return {
        site: Lives(
            *(
                pooled[kind] * _factor(both[kind], pooled[kind], chain, is_on=bool(kind))
                for kind in (False, True)
            )
        )
        for site, both in tallies.items()
    }


def _pooled(tallies: Sequence[_Tally]) -> Rates:
    ends = np.sum([tally.ends for tally in tallies], axis=0) + PRIOR_ENDS
    hours = np.sum([tally.hours for tally in tallies], axis=0) + PRIOR_ENDS / prior()
    rates: Rates = ends / hours
    return rates


def _factor(tally: _Tally, pooled: Rates, chain: Chain, *, is_on: bool) -> float:
    """Return how much faster a zone's spells end than those of all."""
    expected = float((tally.late_hours * pooled).sum())
    if tally.rare_looks:
        expected += tally.rare_looks * _seen_to_end(chain, tally.rare_gap_h, is_on=is_on)
    return (tally.late_ends + PRIOR_ENDS) / (expected + PRIOR_ENDS)


def _seen_to_end(chain: Chain, gap_h: float, *, is_on: bool) -> float:
    """Return the chance that the next look, some hours later, finds the other state."""
    usual = chain.usual().copy()
    ours = slice(ON_YOUNG, None) if is_on else slice(None, ON_YOUNG)
    found = np.zeros_like(usual)
    found[ours] = usual[ours] / usual[ours].sum()
    return 1.0 - float((found @ chain.after(gap_h))[ours].sum())


def _tally(spells: Sequence[Spell], now_s: Seconds, *, is_on: bool) -> _Tally:
    """Return what was seen of one kind of spells; the newest of all has not ended."""
    ended = np.array([i + 1 < len(spells) for i, s in enumerate(spells) if s.is_on == is_on], bool)
    ours = [spell for spell in spells if spell.is_on == is_on]
    lows = np.array(AGES_H)
    ages = np.array([spell.age_h for spell in ours])
    until_s = np.array([spell.until_s for spell in ours])
    looks = np.array([spell.looks for spell in ours], np.float64)
    fine = ~np.array([spell.is_coarse for spell in ours], bool)
    weights = 0.5 ** ((now_s - until_s) / HOUR_S / FORGETS_H)
    hours = np.clip(np.minimum(ages[:, None], np.append(lows[1:], np.inf)) - lows, 0.0, None)
    bracket = np.searchsorted(lows, ages, side="right") - 1
    ends = np.bincount(bracket[fine & ended], minlength=len(lows)).astype(np.float64)
    rare = float((looks * weights)[~fine].sum())
    return _Tally(
        ends,
        hours[fine].sum(axis=0),
        float(weights[ended].sum()),
        (hours * weights[:, None])[fine].sum(axis=0),
        rare,
        round(float(ages[~fine].sum() / max(1.0, looks[~fine].sum())), 2) if rare else 0.0,
    )
