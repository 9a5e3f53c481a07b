"""The base of every value: frozen, strict about unknown fields, cheap to import."""

from functools import cache, cached_property
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

_set = object.__setattr__  # values are frozen, for everybody else


class Value(BaseModel):
    """A frozen value; to change one is to make another with `but`."""

    # defer_build: a command that never validates a class does not pay for its schema.
    # constants: without it, infinity and NaN are written as null, and nothing reads them again.
    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, ser_json_inf_nan="constants"
    )

    def but(self, **changes: Any) -> Self:
        """Return the same value with some fields replaced (the new fields are not validated)."""
        fields = {**vars(self), **changes}
        for name in _derived(type(self)):
            fields.pop(name, None)  # copied along, and of the fields as they were
        return self._of(fields, self.__pydantic_fields_set__ | changes.keys())

    @classmethod
    def known(cls, **fields: Any) -> Self:
        """Return a value of all of its fields, which are right already: none is validated.

        A few times as fast as `model_construct`, which looks for those that are left out.
        """
        return cls._of(fields, set(fields))

    @classmethod
    def _of(cls, fields: dict[str, Any], given: set[str]) -> Self:
        new = cls.__new__(cls)
        _set(new, "__dict__", fields)
        _set(new, "__pydantic_fields_set__", given)
        _set(new, "__pydantic_extra__", None)  # no value has any, nor private attributes
        _set(new, "__pydantic_private__", None)
        return new


class Wire(Value):
    """A value that another version may have written: unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


@cache
def _derived(of: type[Value]) -> tuple[str, ...]:
    """Return what a class works out of its fields once and remembers."""
    each = (vars(one) for one in of.__mro__)
    return tuple(name for own in each for name, is_ in own.items() if _is_remembered(is_))


def _is_remembered(what: object) -> bool:
    return isinstance(what, cached_property)
