"""The limits of one batch of a stream."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The size of one batch: it takes no more units once a limit is reached. `None`: no limit."""

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None

    def reached(self, files: int, size: int, rows: int) -> bool:
        """Return True if a batch of this many files, bytes and rows reaches a limit."""
        pairs = ((self.files, files), (self.bytes, size), (self.rows, rows))
        return any(limit is not None and taken >= limit for limit, taken in pairs)


NO_LIMITS = Limits()
