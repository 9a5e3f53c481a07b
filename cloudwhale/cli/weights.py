"""What each named score counted in a stored round: as the user set it, else as its policy has."""

from collections.abc import Mapping

from cloudwhale import plugins
from cloudwhale.model.plan import Round
from cloudwhale.planning.rules import Rules
from cloudwhale.spi.errors import SettingsError


def weights_of(stored: Round) -> Mapping[str, float]:
    """Return weights by name of score; empty when the round's policy is not installed any more."""
    said = Rules.model_validate_json(stored.settings).weights
    if said:
        return said
    try:
        found: Mapping[str, float] = plugins.load(plugins.SCORES, stored.score)().weights
    except SettingsError:
        return {}
    return found
