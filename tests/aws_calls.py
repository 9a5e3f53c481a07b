"""AWS as a table of answers, for tests of what is made of them.

What is asked is held against botocore's own models: a word that AWS does not know fails here.
"""

from collections.abc import Mapping
from functools import cache
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


@cache
def _operations(service: str) -> Mapping[str, Any]:
    """Return the operations of a service by the names that boto3 gives them."""
    model: Any = import_module("botocore.session").get_session().get_service_model(service)
    snake: Any = import_module("botocore").xform_name
    return {snake(name): model.operation_model(name) for name in model.operation_names}


def must_be_known(service: str, verb: str, words: Mapping[str, Any]) -> None:
    """Fail for a verb or a word that AWS does not know."""
    shape = _operations(service)[verb].input_shape
    validator: Any = import_module("botocore.validate").ParamValidator()
    report = validator.validate(dict(words), shape)
    assert not report.has_errors(), f"{service} {verb}: {report.generate_report()}"


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
        must_be_known(service, verb, words)
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
