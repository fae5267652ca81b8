"""The request of a read of Spark's change feed, which reaches the Python data source as an option."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from paimon_core.errors import InvalidInputError, UnsupportedError

REQUEST_OPTION = "read.change-feed"
"""The option that contains the request, which only the connector sets."""
RAW, NET = "NONE", "NET_CHANGES"
"""Deduplication modes of Spark: also rows that only moved between files; one change for each key."""


@dataclass(frozen=True)
class FeedRequest:
    """A request for changes, as ``PaimonChangelog.java`` describes it."""

    start: str | None = None
    """A version; `None`: `start_micros`, or else all changes of the table."""
    end: str | None = None
    start_micros: int | None = None
    """Epoch microseconds."""
    end_micros: int | None = None
    with_start: bool = True
    with_end: bool = True
    mode: str = "DROP_CARRYOVERS"
    """The deduplication mode."""
    updates: bool = False
    """True if the two rows of an update have types of their own."""

    @property
    def cancel(self) -> bool:
        """True if rows that only moved between files are left out."""
        return self.mode != RAW

    @property
    def has_end(self) -> bool:
        """True if the changes end at a version or a time."""
        return self.end is not None or self.end_micros is not None

    @property
    def names_updates(self) -> bool:
        """True if the engine names the rows of updates; Spark merges the changes of a key only with these names."""
        return self.updates or self.mode == NET

    def to_text(self) -> str:
        """Return the request as JSON."""
        return json.dumps(asdict(self))


def check_stream(request: FeedRequest, root: str) -> None:
    """Raise UnsupportedError for a request that a stream cannot answer."""
    if request.has_end:
        raise UnsupportedError(
            f"a stream of the changes of {root} has no end: leave out the last version or time, or read a batch"
        )
    if request.mode == NET:
        raise UnsupportedError(
            f"a stream cannot merge the changes of {root} to net changes: Spark drops a commit as late if its time is "
            "the time of an earlier batch, and two commits can have the same millisecond. Read net changes in a batch"
        )


def request_of(text: str) -> FeedRequest:
    """Return the request that `FeedRequest.to_text`, or ``PaimonChangelog.java``, wrote.

    Raises InvalidInputError for any other text.
    """
    try:
        return FeedRequest(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"option {REQUEST_OPTION!r} is {text!r}, but only the connector sets it: use CHANGES FROM VERSION, or "
            "spark.read.changes"
        ) from error


def pop_request(options: Mapping[str, str]) -> tuple[FeedRequest | None, dict[str, str]]:
    """Return the request that the option contains, and the other options; `None`: the option is not set."""
    others = {name: value for name, value in options.items() if name.lower() != REQUEST_OPTION}
    text = next((value for name, value in options.items() if name.lower() == REQUEST_OPTION), None)
    return (None if text is None else request_of(text)), others
