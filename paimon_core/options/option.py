"""Typed declarations of options, and a read-only map of option texts.

A table stores options as text; a declaration parses the text of its key. The map parses a value when it is
requested, so it may hold unknown keys.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from paimon_core.errors import InvalidInputError
from paimon_core.options.parse import boolean

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """The treatment of an option by this engine: one of four kinds, and a reason for all kinds except *used*."""

    kind: Literal["used", "without effect here", "not yet", "refused"]
    reason: str = ""


USED: Final = Mark("used")


def without_effect(reason: str) -> Mark:
    """Mark an option that has no effect here and never will; a user who sets it gets a warning."""
    return Mark("without effect here", reason)


def not_yet(reason: str) -> Mark:
    """Mark an option whose effect is not implemented yet; a user who sets it gets a warning."""
    return Mark("not yet", reason)


def refused(reason: str) -> Mark:
    """Mark an option that `schema.support` or `schema.validate` refuses, because rows could be wrong without it."""
    return Mark("refused", reason)


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """The declaration of one option: its key, its parser, its default and its description.

    ``parse`` raises a ValueError that names the accepted texts. If the key is absent, the first present key of
    ``old_keys`` is used. A test compares ``mark`` with the code.
    """

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str
    old_keys: tuple[str, ...] = ()
    mark: Mark = USED


class Options(Mapping[str, str]):
    """A read-only, hashable map of option texts."""

    __slots__ = ("_hash", "_values")

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = dict(values or {})
        self._hash: int | None = None
        for key, text in self._values.items():
            if not isinstance(key, str) or not isinstance(text, str):
                raise InvalidInputError(f"option {key!r} is {text!r}: keys and values of options must be text")

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._values.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Options):
            return self._values == other._values
        return self._values == other if isinstance(other, Mapping) else NotImplemented

    def __repr__(self) -> str:
        return f"Options({self._values!r})"

    def __reduce__(self) -> tuple[type["Options"], tuple[dict[str, str]]]:
        return Options, (self._values,)

    def _key_in_use(self, option: Option[T]) -> str | None:
        if option.key in self._values:
            return option.key
        for key in option.old_keys:
            if key in self._values:
                return key
        return None

    def has(self, option: Option[T]) -> bool:
        """Return True if the option is set, under its key or an old key."""
        return self._key_in_use(option) is not None

    def value(self, option: Option[T]) -> T:
        """Return the value of an option, or its default. Raises InvalidInputError, naming key and accepted texts."""
        key = self._key_in_use(option)
        if key is None:
            return option.default
        text = self._values[key]
        try:
            return option.parse(text)
        except ValueError as error:
            raise InvalidInputError(f"option {key!r} is {text!r}: {error}") from error

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a boolean option that has no declaration. Raises InvalidInputError as `value`."""
        return self.value(Option(key, boolean, default, ""))

    def merged(self, other: Mapping[str, str | None]) -> "Options":
        """Return these options, overridden by others; `None` removes a key. Returns ``self`` if nothing changes."""
        values = {key: text for key, text in {**self._values, **other}.items() if text is not None}
        return self if values == self._values else Options(values)
