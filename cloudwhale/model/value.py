"""The base of every value: frozen, strict about unknown fields, cheap to import."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen value; to change one is to make another with `but`."""

    # defer_build: a command that never validates a class does not pay for its schema.
    # constants: without it, infinity and NaN are written as null, and nothing reads them again.
    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, ser_json_inf_nan="constants"
    )

    def but(self, **changes: Any) -> Self:
        """Return the same value with some fields replaced (the new fields are not validated)."""
        return self.model_copy(update=changes)


class Wire(Value):
    """A value that another version may have written: unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
