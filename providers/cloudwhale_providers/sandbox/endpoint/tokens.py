"""The same token, the same answer: what a client may ask twice happens once."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from cloudwhale_providers.sandbox.endpoint.messages import Answer
from cloudwhale_providers.sandbox.endpoint.refused import Refused

MOST = 64
"""EC2 API Reference, "Ensuring idempotency": so many ASCII characters."""


class Tokens:
    """Answers by token; a call that was refused has used none."""

    def __init__(self, mismatch: str) -> None:
        """`mismatch`: the code for a token that comes again with other words."""
        self._mismatch = mismatch
        self._answers: dict[tuple[str, ...], tuple[str, Answer]] = {}

    def once(
        self, whose: tuple[str, ...], token: str, words: Mapping[str, Any], do: Callable[[], Answer]
    ) -> Answer:
        """Return what `do` answers, or what it has answered; raise Refused."""
        if not token:
            return do()
        if len(token) > MOST or not token.isascii():
            raise Refused("InvalidParameterValue", "The client token is too long or not ASCII")
        key, digest = (*whose, token), json.dumps(words, sort_keys=True, default=str)
        if key in self._answers:
            before, answer = self._answers[key]
            if before != digest:
                raise Refused(
                    self._mismatch,
                    "The request uses the same client token as a previous, but non-identical "
                    "request.",
                )
            return answer
        answer = do()
        if answer.status < 300:
            self._answers[key] = (digest, answer)
        return answer
