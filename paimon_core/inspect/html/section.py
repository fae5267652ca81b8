"""An independent part of the summary: its value, or the error that prevented it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from paimon_core.errors import hide_secrets

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Section(Generic[T_co]):
    """The value of a part, or `None` and the ``error`` that prevented it."""

    value: T_co | None
    error: str | None = None


def attempt(build: Callable[[], T]) -> Section[T]:
    """Return the value of ``build()``, or its error, so that a notebook can still show the other parts."""
    try:
        return Section(build())
    except Exception as error:
        return Section(None, described(error))


def described(error: Exception) -> str:
    """Return an error as text, without passwords."""
    return hide_secrets(f"{type(error).__name__}: {error}")
