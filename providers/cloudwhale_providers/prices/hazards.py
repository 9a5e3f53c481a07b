"""How often spot machines of AWS are expected to go, by Spot Advisor's bands."""

HAZARD_OF_BAND: tuple[float, ...] = (0.025, 0.075, 0.125, 0.175, 0.30)
"""Share of machines that were interrupted in a month, by index of the band.

The middle of each; the last one, over 20 %, has no upper end.
"""
LIFE_H = 24.0
"""How long a spot machine is kept, on average: the share is of machines, not of hours. Assumed."""


def hazard_per_h(band: int) -> float:
    """Return preemptions per hour for an index of Spot Advisor's bands, 0 to 4.

    Of machines that live for an exponential time of mean 1/h beside one of mean LIFE_H, the share
    h / (h + 1/LIFE_H) is interrupted before it is given back.
    """
    share = HAZARD_OF_BAND[band]
    return share / ((1.0 - share) * LIFE_H)
