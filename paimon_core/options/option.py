"""Options: typed declarations, and a read-only map that answers them.

A table stores options as text; a declaration says how the text of its key is understood. Parsing happens when a value
is asked for, so a map may hold keys nobody here knows.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from paimon_core.errors import InvalidInputError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """What becomes of an option here: one of the four kinds below, and the reason for all but *used*."""

    kind: Literal["used", "without effect here", "not yet", "refused"]
    reason: str = ""


USED: Final = Mark("used")


def without_effect(reason: str) -> Mark:
    """Mark an option that has no effect here and never will, with a warning where a user gives it."""
    return Mark("without effect here", reason)


def not_yet(reason: str) -> Mark:
    """Mark an option whose effect is still missing, with a warning where a user gives it."""
    return Mark("not yet", reason)


def refused(reason: str) -> Mark:
    """Mark an option without whose effect rows could be wrong: `schema.support` or `schema.validate` refuses it."""
    return Mark("refused", reason)


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One option: its key, how its text becomes a value, the value when it is absent, what it is for.

    ``parse`` raises ValueError saying what is accepted. ``old_keys`` are asked, in order, when the key is absent.
    ``mark`` says what becomes of it here; a test holds marks against the code.
    """

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str
    old_keys: tuple[str, ...] = ()
    mark: Mark = USED


class Options(Mapping[str, str]):
    """A read-only map of option texts; equal maps are equal and hash equally."""

    __slots__ = ("_hash", "_values")

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = dict(values or {})
        self._hash: int | None = None
        for key, text in self._values.items():
            if not isinstance(key, str) or not isinstance(text, str):
                raise InvalidInputError(f"options map text to text: option {key!r} is {text!r}")

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
        return next((key for key in (option.key, *option.old_keys) if key in self._values), None)

    def has(self, option: Option[T]) -> bool:
        """Whether the option is set, under its key or an older one."""
        return self._key_in_use(option) is not None

    def value(self, option: Option[T]) -> T:
        """The value of an option, or its default. Raises InvalidInputError naming key, text and what is accepted."""
        key = self._key_in_use(option)
        if key is None:
            return option.default
        text = self._values[key]
        try:
            return option.parse(text)
        except ValueError as error:
            raise InvalidInputError(f"option {key!r} is {text!r}: {error}") from error

    def merged(self, other: Mapping[str, str | None]) -> "Options":
        """These options overlaid with others; None removes a key. ``self`` when nothing changes."""
        values = {key: text for key, text in {**self._values, **other}.items() if text is not None}
        return self if values == self._values else Options(values)
