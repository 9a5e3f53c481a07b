"""AWS as a table of answers, for tests of what is made of them."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.aws.errors import Errand, refusal


def refused(code: str, says: str = "no", status: int = 400) -> CloudwhaleError:
    """Return a refusal as the real clients raise it."""
    errors: Any = import_module("botocore.exceptions")
    cause = errors.ClientError({"Error": {"Code": code, "Message": says}}, "Verb")
    error = refusal(code, says, Errand("ec2:Verb", "us-east-1"), status)
    error.__cause__ = cause
    return error


class FakeCalls:
    """Answers by verb; what nobody has said is answered with nothing."""

    def __init__(self) -> None:
        self._answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str, Mapping[str, Any]]] = []
        """Region, verb and words, as they came."""

    def says(self, verb: str, answer: Any) -> None:
        """Answer a verb with this, or with what a function makes of region and words.

        An error is raised.
        """
        self._answers[verb] = answer

    def call(self, region: str, service: str, verb: str, **words: Any) -> Mapping[str, Any]:
        """See Calls."""
        self.asked.append((region, verb, words))
        answer = self._answers.get(verb, {})
        answer = answer(region, words) if callable(answer) else answer
        if isinstance(answer, BaseException):
            raise answer
        found: Mapping[str, Any] = answer
        return found

    def counted(self, verb: str) -> int:
        """Return how often a verb was asked."""
        return sum(one == verb for _, one, _ in self.asked)
