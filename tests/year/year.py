"""A year of two tables: commits of machines with wrong clocks, maintenance, tags, branches and streams that stop.

``orders`` is a table with a primary key, a changelog and daily tags; its partitions expire by their values. ``events``
is an append table with deletion vectors and hourly tags that expire; its partitions expire by their files. Times are
true times: what is due is decided by the clock of the machine that commits.
"""

import pickle
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa

from paimon_core.errors import OutOfRangeError
from paimon_core.read.stream import Stream
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.table import Table
from tests.year.model import Model, Row, WrongRowsError, compare, state_of
from tests.year.world import DAY, HOUR, MINUTE, World

COLUMNS = pa.schema(
    [pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())]
)
IDS = 24
AHEAD = {"steady": 0, "ahead": 10 * MINUTE, "behind": -10 * MINUTE}
"""How far the clock of each machine is ahead."""
RETAINED, MOST_TAGS, TAG_AGE = 12, 14, 2
"""The age of partitions in days, the number of daily tags, the age of hourly tags in days."""
_COMMON = {
    "file.format": "avro",
    "snapshot.time-retained": "6 h",
    "snapshot.num-retained.min": "3",
    "partition.expiration-time": f"{RETAINED} d",
    "partition.expiration-check-interval": "6 h",
    "tag.automatic-creation": "process-time",
    "consumer.expiration-time": "21 d",
}
TABLES = {
    "orders": Schema(
        COLUMNS,
        ["day", "id"],
        ["day"],
        {
            **_COMMON,
            "bucket": "1",
            "changelog-producer": "lookup",
            "changelog.time-retained": "2 d",
            "tag.num-retained-max": str(MOST_TAGS),
        },
    ),
    "events": Schema(
        COLUMNS,
        [],
        ["day"],
        {
            **_COMMON,
            "deletion-vectors.enabled": "true",
            "partition.expiration-strategy": "update-time",
            "tag.creation-period": "hourly",
            "tag.default-time-retained": f"{TAG_AGE} d",
            "compaction.min.file-num": "5",
        },
    ),
}
ASLEEP = {"steady": (0, 0), "sleeper": (12, 30), "lost": (40, 60)}
"""By stream, for how many days of how many it stops. A consumer of ``lost`` expires before the stream goes on."""


@dataclass(frozen=True)
class Length:
    """The length of a run.

    Attributes:
        days: the days.
        rate: the commits of a day to all `TABLES` together.
        seed: draws what is done.
        checks: the days between two checks.
        begin: local time.
        tables: the tables that are simulated. The commits to others are left out, so that each table can have a
            process of its own.
    """

    days: int = 366
    rate: int = 48
    seed: int = 0
    checks: int = 7
    begin: str = "2028-01-01T00:00:00"
    tables: tuple[str, ...] = tuple(TABLES)


@dataclass(frozen=True)
class Sample:
    """One measurement: the day, and the requests to the store and the seconds of a step, or the files and bytes."""

    day: int
    count: int
    amount: float


class Follower:
    """A stream of ``orders``: the rows that it has seen, by key, and its consumer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[tuple[str, int], int] = {}
        self.checkpoint: dict[str, Any] | None = None
        self.restarts = 0

    def follow(self, table: Table) -> None:
        """Read what is new, and record the progress; begin again if the changes have expired."""
        stream = table.stream(changelog=True)
        if self.checkpoint is not None:
            stream.restore(self.checkpoint)
        try:
            self._read(stream)
        except OutOfRangeError:
            if self.name != "lost":
                raise
            self.restarts += 1
            self.rows.clear()
            stream = table.stream(changelog=True)
            self._read(stream)
        self.checkpoint = stream.checkpoint()
        table.consumers.reset(self.name, stream._position.next_snapshot)

    def _read(self, stream: Stream) -> None:
        for batch in stream.to_batches():
            for row in batch.to_pylist():
                key = row["day"], row["id"]
                if row["rowkind"] in ("+I", "+U"):
                    self.rows[key] = row["n"]
                elif self.rows.pop(key, None) != row["n"]:
                    raise WrongRowsError(f"stream {self.name}: {row} is deleted, but is not what was inserted")


class Year:
    """One run."""

    def __init__(self, length: Length) -> None:
        self.length, self.rng = length, random.Random(length.seed)
        self.turns = random.Random(f"turns {length.seed}")
        self.tables = length.tables
        self.begin = round(datetime.fromisoformat(length.begin).timestamp() * 1000)
        self.world = World(self.begin)
        self.world.clock.ahead.update(AHEAD)
        self.models = {name: Model() for name in self.tables}
        self.followers = [Follower(name) for name in ASLEEP if "orders" in self.tables]
        self.steps: dict[str, list[Sample]] = defaultdict(list)
        self.sizes: dict[str, list[Sample]] = defaultdict(list)
        self.done: Counter[str] = Counter()
        self._changed = dict.fromkeys(self.tables, self.begin)
        """When each table was last written or deleted from, which is when tags expire."""
        self._seen = dict.fromkeys(self.tables, 0)
        self._value = 0
        self._days = 0
        for name in self.tables:
            self.world.create(name, TABLES[name])

    @property
    def day(self) -> int:
        """The number of days since the beginning."""
        return (self.world.clock.time - self.begin) // DAY

    def run(self, report: Callable[[str], object] = lambda text: None, state: Path | None = None) -> None:
        """Run the days that are left.

        Args:
            report: called with the progress every 30 days.
            state: a file that gets this object every ten days: see `resume`.
        """
        for day in range(self._days, self.length.days):
            self._day(day)
            self._days = day + 1
            if state and self._days % 10 == 0:
                self._keep(state)
            if day % 30 == 29:
                report(
                    f"day {day + 1}: {self.done.total()} steps, files and bytes {[*map(self.world.files, self.tables)]}"
                )

    @classmethod
    def resume(cls, state: Path, length: Length) -> "Year":
        """Return the run that `run` wrote into a file, else a new one. Raise ValueError if it has another length."""
        if not state.exists():
            return cls(length)
        year = pickle.loads(state.read_bytes())
        if year.length != length:
            raise ValueError(f"{state} is a run of {year.length}, not of {length}")
        return year  # type: ignore[no-any-return]

    def _keep(self, state: Path) -> None:
        new = state.with_suffix(".new")
        new.write_bytes(pickle.dumps(self))
        new.replace(state)

    def _day(self, day: int) -> None:
        rate, clock = self.length.rate, self.world.clock
        for number in range(rate):
            clock.time = self.begin + day * DAY + number * DAY // rate
            self._turn_clocks(day, number)
            name = self.turns.choice([*TABLES])
            if name in self.tables:
                self._commit(name)
            for follower in self.followers:
                asleep, period = ASLEEP[follower.name]
                if not period or day % period >= asleep:
                    with self._step(f"stream {follower.name}"):
                        follower.follow(self.world.open("orders"))
        for name in self.tables:
            with self._step(f"compact {name}"):
                self._compact(name)
        if day % 7 == 6:
            self._week()
        if day % 30 == 20 and "events" in self.tables:
            self._branch()
        if day % self.length.checks == self.length.checks - 1:
            self.check()
        for name in self.tables:
            self.sizes[name].append(Sample(day, *self.world.files(name)))

    def _turn_clocks(self, day: int, number: int) -> None:
        """Let the clock of a machine jump back by three hours on every fortieth day, and forward again."""
        if number == self.length.rate // 2:
            self.world.clock.ahead["steady"] = -3 * HOUR if day % 40 == 35 else 0

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        calls, begun = self.world.calls.count, process_time()
        yield
        self.steps[name].append(Sample(self.day, self.world.calls.count - calls, process_time() - begun))
        self.done[name.partition(" ")[0]] += 1

    # ---- changes

    def _commit(self, name: str) -> None:
        table = self.world.open(name, self.rng.choice([*AHEAD]))
        with self._step(f"write {name}"):
            if self.rng.random() < 0.15:
                self._delete(name, table)
            else:
                self._write(name, table)
        self._note(name)

    def _write(self, name: str, table: Table) -> None:
        rows = self._rows(name)
        table.write(_arrow(rows))
        self._changed[name] = self.world.clock.time
        self.models[name].put(rows)

    def _rows(self, name: str) -> list[Row]:
        """Return rows of today and of the two days before; the ids of ``events`` do not repeat."""
        rows = {}
        for _ in range(self.rng.randint(1, 5)):
            self._value += 1
            then = self.world.clock.time - self.rng.choice((0, 0, 0, 1, 2)) * DAY
            day = f"{datetime.fromtimestamp(then / 1000):%Y-%m-%d}"
            key = self.rng.randrange(IDS) if name == "orders" else self._value
            rows[day, key] = (day, key, self._value)
        return [*rows.values()]

    def _delete(self, name: str, table: Table) -> None:
        model, day = self.models[name], self.world.clock.day
        some = [key for key in model.days[day] if self.rng.random() < 0.1]
        if some:
            table.delete(f"day = '{day}' AND id IN ({', '.join(map(str, some))})")
            self._changed[name] = self.world.clock.time
            model.take((day, key) for key in some)

    def _note(self, name: str) -> None:
        """Record the states of the snapshots that a step has published. Only an expiry drops whole days."""
        table, model = self.world.open(name), self.models[name]
        newest = table.snapshot()
        before = model.at.get(self._seen[name], {})
        for number in range(self._seen[name] + 1, 1 + (0 if newest is None else newest.id)):
            snapshot = table.store.snapshots.get(number)
            if snapshot.commit_kind == CommitKind.OVERWRITE:
                left = set(table.to_arrow(["day"], snapshot_id=number).column("day").to_pylist())
                gone = sorted({*model.state()} - left)
                self._check_expired(name, gone)
                model.drop(gone)
            if snapshot.commit_kind != CommitKind.COMPACT:
                before = dict(model.state())
            model.at[number] = before
        self._seen[name] = 0 if newest is None else newest.id

    def _check_expired(self, name: str, gone: list[str]) -> None:
        for day in gone:
            midnight = round(datetime.fromisoformat(day).timestamp() * 1000)
            if self.world.clock.time + max(AHEAD.values()) < midnight + RETAINED * DAY - HOUR:
                raise WrongRowsError(f"{name}: the partition {day} expired on {self.world.clock.day}, too early")
        self.done["partitions expired"] += len(gone)

    # ---- maintenance

    def _compact(self, name: str) -> None:
        self.world.open(name).compact(full=True)
        self._note(name)

    def _week(self) -> None:
        """Let a writer die before its commit, and remove what the writer of the last week has left."""
        for name in self.tables:
            table = self.world.open(name, "behind")
            with table.writer() as writer:
                writer.write(_arrow([(self.world.clock.day, 1, 1)]))
                writer.prepare_commit()
            with self._step(f"orphans {name}"):
                self.done["orphan files"] += self.world.open(name, "ahead").maintenance.remove_orphan_files().count

    def _branch(self) -> None:
        """Write into a branch of today, and make it the table; then delete the branch."""
        name = "events"
        table = self.world.open(name)
        newest = table.snapshot()
        assert newest is not None
        table.branches.create("trial", snapshot_id=newest.id)
        rows = self._rows(name)
        self.world.open(name, branch="trial").with_options({"write-only": "true"}).write(_arrow(rows))
        with self._step("fast-forward events"):
            table.branches.fast_forward("trial")
        table.branches.delete("trial")
        self.models[name].put(rows)
        self._seen[name] = newest.id
        self._note(name)

    # ---- checks

    def check(self, *, ages: bool = True) -> None:
        """Compare the rows of all snapshots, tags and streams with the models, and verify the tables.

        ``ages``: True to check as well that streams are up to date, and that everything old has expired.
        """
        for name in self.tables:
            table, model = self.world.open(name), self.models[name]
            snapshots = table.snapshots()
            moments = {f"snapshot {one.id}": one for one in snapshots[-3:] + snapshots[:1]}
            moments |= {f"tag {tag.name}": tag.snapshot for tag in table.tags.list()}
            for what, snapshot in moments.items():
                self._compare(table, what, snapshot)
            self._check_times(name, snapshots, table)
            if ages:
                self._check_ages(name, table)
            kept = {snapshot.id for snapshot in (*snapshots, *moments.values())}
            model.at = {number: state for number, state in model.at.items() if number in kept}
            report = table.verify(deep=True)
            if report.faults:
                raise WrongRowsError(f"{name} on {self.world.clock.day}: {'; '.join(map(str, report.faults))}")
        if ages and self.followers:
            self._check_streams()
        self.done["checks"] += 1

    def _check_streams(self) -> None:
        """Compare what the streams that are awake have seen with the rows of the table; forget expired partitions."""
        rows = {(d, k): n for d, k, n in _rows_of(self.world.open("orders").to_arrow())}
        for follower in self.followers:
            asleep, period = ASLEEP[follower.name]
            if not period or self.day % period >= asleep:
                days = {day for day, _ in rows}
                seen = {key: n for key, n in follower.rows.items() if key[0] in days}
                follower.rows = seen
                compare(state_of((*k, n) for k, n in seen.items()), state_of((*k, n) for k, n in rows.items()),
                        f"stream {follower.name} on {self.world.clock.day}")  # fmt: skip

    def _compare(self, table: Table, what: str, snapshot: Snapshot) -> None:
        kind, _, name = what.partition(" ")
        rows = table.to_arrow(tag=name) if kind == "tag" else table.to_arrow(snapshot_id=snapshot.id)
        model = self.models[table.path.rpartition("/")[2]]
        compare(state_of(_rows_of(rows)), model.at[snapshot.id], f"{table.path} {what} on {self.world.clock.day}")

    def _check_times(self, name: str, snapshots: list[Snapshot], table: Table) -> None:
        """Check that times do not decrease, and time travel to some of them."""
        times = [snapshot.time_millis for snapshot in snapshots]
        if times != sorted(times):
            raise WrongRowsError(f"{name}: the times of snapshots decrease: {times}")
        for snapshot in snapshots[:: max(1, len(snapshots) // 3)]:
            found = table.snapshot(timestamp=snapshot.time_millis)
            if found is None or found.time_millis != snapshot.time_millis:
                raise WrongRowsError(f"{name}: time travel to {snapshot.time_millis} finds {found}")

    def _check_ages(self, name: str, table: Table) -> None:
        now, tags, last = self.world.clock.time, table.tags.list(), self._changed[name]
        oldest = min(self.models[name].state(), default="9999")
        if oldest < f"{datetime.fromtimestamp((now - (RETAINED + 4) * DAY) / 1000):%Y-%m-%d}":
            raise WrongRowsError(f"{name}: partition {oldest} has not expired on {self.world.clock.day}")
        if name == "orders" and len(tags) > MOST_TAGS:
            raise WrongRowsError(f"{name}: {len(tags)} tags are kept, more than {MOST_TAGS}")
        old = [tag.name for tag in tags if name == "events" and last - tag.snapshot.time_millis > (TAG_AGE + 1) * DAY]
        if old:
            raise WrongRowsError(f"{name}: the tags {old} have not expired on {self.world.clock.day}")


def _arrow(rows: list[Row]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=COLUMNS)


def _rows_of(table: pa.Table) -> Iterator[Row]:
    return zip(*(table.column(name).to_pylist() for name in ("day", "id", "n")), strict=True)
