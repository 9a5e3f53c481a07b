"""What a scraper reads of a controller."""

from prometheus_client.parser import text_string_to_metric_families

from cloudwhale.control.exposition import Exposition
from cloudwhale.control.vitals import Vitals


def an_exposition(vitals: Vitals) -> Exposition:
    """Return what turns vitals into text."""
    return Exposition(lambda: vitals.newest, vitals.steady)


def series(text: str) -> dict[str, float]:
    """Return each series of an exposition, `name{label="value",...}`, with its value."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in one.labels.items())
            key = f"{one.name}{{{labels}}}" if labels else one.name
            assert key not in found, f"{key} is told twice"
            found[key] = one.value
    return found
