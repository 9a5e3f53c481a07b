"""Botocore's own models of AWS: what may be asked, and what may be answered."""

import re
from functools import cache
from importlib import import_module
from typing import Any

_sessions: Any = import_module("botocore.session")
_validate: Any = import_module("botocore.validate")
_exceptions: Any = import_module("botocore.exceptions")


@cache
def _operations(service: str) -> dict[str, Any]:
    model = _sessions.get_session().get_service_model(service)
    return {_snake(name): (model, name) for name in model.operation_names}


@cache
def _operation(service: str, verb: str) -> Any:
    model, name = _operations(service)[verb]
    return model.operation_model(name)


def _snake(name: str) -> str:
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def check_asked(service: str, verb: str, words: dict[str, Any]) -> None:
    """Raise botocore's ParamValidationError for words that AWS does not know."""
    wrong = _validate.ParamValidator().validate(words, _operation(service, verb).input_shape)
    if wrong.has_errors():
        raise _exceptions.ParamValidationError(report=wrong.generate_report())


def check_answer(service: str, verb: str, answer: dict[str, Any]) -> None:
    """Fail for an answer that AWS could not have given."""
    shape = _operation(service, verb).output_shape
    if shape is not None:
        wrong = _validate.ParamValidator().validate(answer, shape)
        assert not wrong.has_errors(), wrong.generate_report()
