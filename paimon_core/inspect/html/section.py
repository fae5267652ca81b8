"""A part of the page that stands by itself: its value, or the error that prevented it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from paimon_core.errors import hide_secrets

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Section(Generic[T_co]):
    """The value of a part; `None` with ``error``: the reason why there is none."""

    value: T_co | None
    error: str | None = None


def attempt(build: Callable[[], T]) -> Section[T]:
    """Return the value of ``build()``, or its error: a notebook shows the other parts of a broken table."""
    try:
        return Section(build())
    except Exception as error:
        return Section(None, described(error))


def described(error: Exception) -> str:
    """Return an error as text, without passwords."""
    return hide_secrets(f"{type(error).__name__}: {error}")
