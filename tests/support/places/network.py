"""Operations on a table over a network that fails at one request, or at every request from one on.

Each function runs an operation again and again, with the next request failing each time, checks what a client on a
sound network finds, and returns the number of requests that failed.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from paimon_core import Schema, Table
from paimon_core.errors import PaimonError

COLUMNS = pa.schema([pa.field("id", pa.int64(), False), pa.field("v", pa.string())])
SCHEMA = Schema(COLUMNS, primary_keys=["id"], options={"bucket": "1", "write-only": "true"})
ONE_FAULT_SECONDS = 60.0
"""The longest that an operation may take if one request fails."""


class Proxy(Protocol):
    """A proxy of `proxy`."""

    seen: list[str]
    failed: list[str]

    def arm(self, mode: str, fails: Callable[[int, str], bool]) -> None: ...

    def disarm(self) -> None: ...


@dataclass
class Link:
    """A table that is reached directly, and through a proxy.

    Attributes:
        proxy: the proxy.
        path, options: the table, reached directly.
        far_path, far_options: the table, reached through the proxy.
        seconds: how long each operation through the proxy took.
    """

    proxy: Proxy
    path: str
    options: Mapping[str, str]
    far_path: str
    far_options: Mapping[str, str]
    seconds: list[float] = field(default_factory=list)

    def create(self) -> None:
        """Create the table with two commits."""
        table = Table.create(self.path, SCHEMA, dict(self.options))
        for number in (1, 2):
            table.write(batch(-number))

    def near(self) -> Table:
        """Open the table directly."""
        return Table.open(self.path, dict(self.options))

    def far(self) -> Table:
        """Open the table through the proxy."""
        return Table.open(self.far_path, dict(self.far_options))

    def rows(self) -> Counter[int]:
        """Return the keys of the table, as a sound network shows them."""
        return Counter(self.near().to_arrow()["id"].to_pylist())

    def attempt(self, operation: Callable[[Table], object], limit: float = ONE_FAULT_SECONDS) -> bool:
        """Run an operation through the proxy, then disarm it; return True if the operation succeeds.

        Any failure is an OSError or an error of the engine, and comes within ``limit`` seconds.
        """
        begun = time.monotonic()
        try:
            operation(self.far())
        except (OSError, PaimonError):
            return False
        else:
            return True
        finally:
            self.proxy.disarm()
            self.seconds.append(time.monotonic() - begun)
            assert self.seconds[-1] < limit, (self.seconds[-1], self.proxy.failed[:1])


def batch(number: int) -> pa.Table:
    """Return the row of a number."""
    return pa.table({"id": [number], "v": [f"v{number}"]}, schema=COLUMNS)


def _points(link: Link, mode: str, step: int) -> Iterator[int]:
    """Arm the proxy for request 0, `step`, ...; end after the first operation in which no request failed."""
    number = 0
    while True:
        link.proxy.arm(mode, lambda n, line, at=number: n == at)
        yield number
        if not link.proxy.failed:
            return
        number += step


def commits(link: Link, mode: str, step: int = 1, retried: bool = True) -> int:
    """Commit: every acknowledged commit is there once, and an attempt can be repeated.

    ``retried``: a single fault must not fail the commit, except 412, and uploads that gcsfs cannot resume.
    """
    expected, count = link.rows(), 0
    for number in _points(link, mode, step):
        acknowledged = link.attempt(lambda table, number=number: table.write(batch(number)))
        found = link.rows()
        assert max(found.values()) == 1
        assert found.keys() - {number} == expected.keys()
        assert number in found or not acknowledged
        failed = link.proxy.failed[:1]
        resumed = any("upload_id=" in line for line in failed)
        assert acknowledged or mode == "412" or resumed or not retried, (failed, "a single fault is retried")
        if number not in found:
            link.near().write(batch(number))
        expected[number] = 1
        count += bool(failed)
    snapshots = [snapshot.id for snapshot in link.near().snapshots()]
    assert snapshots == list(range(1, len(snapshots) + 1))
    assert link.rows() == expected
    return count


def reads(link: Link, mode: str, step: int = 1) -> int:
    """Read: the rows are the table's, or the read fails."""
    expected, count = link.rows(), 0
    for _ in _points(link, mode, step):
        found: list[Counter[int]] = []
        if link.attempt(lambda table, found=found: found.append(Counter(table.to_arrow()["id"].to_pylist()))):
            assert found == [expected]
        count += bool(link.proxy.failed)
    return count


def compactions(link: Link, mode: str, step: int = 1) -> int:
    """Compact: the rows stay the same, and a later compaction completes the work."""
    expected, count = link.rows(), 0
    for _ in _points(link, mode, step):
        link.attempt(lambda table: table.compact(full=True))
        assert link.rows() == expected
        count += bool(link.proxy.failed)
        link.near().write(batch(-1))  # something to compact
    link.near().compact(full=True)
    assert link.rows() == expected
    return count


def expiries(link: Link, mode: str, step: int = 1) -> int:
    """Expire: what the remaining snapshots need stays, and a later expiry completes the work."""
    link.near().maintenance.expire_snapshots(retain_max=1)  # older ones have fewer rows
    expected, count = link.rows(), 0
    for _ in _points(link, mode, step):
        table = link.near()
        for _ in range(2):  # something to expire
            table.write(batch(-1))
            table.compact(full=True)
        link.attempt(lambda table: table.maintenance.expire_snapshots(retain_max=1))
        assert link.rows() == expected
        for snapshot in link.near().snapshots():
            assert Counter(link.near().to_arrow(snapshot_id=snapshot.id)["id"].to_pylist()) == expected
        count += bool(link.proxy.failed)
        link.near().maintenance.expire_snapshots(retain_max=1)
        assert len(list(link.near().snapshots())) == 1
    assert link.near().verify().sound
    return count


def outages(link: Link, mode: str, starts: Iterable[float], limit: float) -> int:
    """Commit while the network fails for good: the error comes within a limit, and the commit is there once or not.

    ``starts``: where it begins to fail, as shares of the requests of a commit. ``limit``: in seconds.
    """
    link.proxy.arm(mode, lambda number, line: False)
    link.attempt(lambda table: table.write(batch(1_000_000)))
    requests, expected = len(link.proxy.seen), link.rows()
    for number, start in enumerate(starts):
        first = int(requests * start)
        link.proxy.arm(mode, lambda n, line, first=first: n >= first)
        acknowledged = link.attempt(lambda table, number=number: table.write(batch(number)), limit)
        found = link.rows()
        assert found.keys() - {number} == expected.keys()
        assert max(found.values()) == 1
        assert number in found or not acknowledged
        link.near().write(batch(number))
        expected[number] = 1
    assert link.rows() == expected
    return requests
