"""The load history of a table: the files that COPY INTO has loaded, so that each file is loaded once.

``copy-into/history/load-<hash of the path>-<epoch ms>`` holds one load of one file as JSON, as in Paimon's Java
connector: path, size, modification time, time of the load, snapshot and rows. A file is the same file while its path,
size and modification time are the same. Expiry of snapshots does not touch the history.

A statement commits under the user ``copy-into`` and a number, which counts the statements of the table. Of two
statements at the same time, both use the next number, and `IdempotentCommits` publishes only one of them; the other one
starts again with the history of the winner. So a history that was read under a number is complete.

``copy-into/statement-<number>-<id>`` holds the loads of a statement, and is written before its commit. The snapshot has
the id as property. If a process dies after its commit, the next statement finds this file and completes the history.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

from paimon_core.commit.best_effort import best_effort
from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.errors import CorruptedError, hide_secrets
from paimon_core.fileio.fileio import join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.store.file_store import FileStore, now_millis

LOAD_USER: Final = "copy-into"
LOAD_PROPERTY: Final = "copy-into.statement"
"""The snapshot property with the id of the statement."""
_PLAN = re.compile(r"statement-(\d+)-([0-9a-f]+)")
_WON = re.compile(r"committed-(\d+)")
_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class LoadSource:
    """A file to load: its path, its size in bytes, and its modification time in epoch milliseconds."""

    path: str
    size: int
    modified: int


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file with the number of rows that a statement loads from it."""

    file: LoadSource
    rows: int


class LoadHistory:
    """The load history of a table or branch."""

    def __init__(self, store: FileStore) -> None:
        self._store, self._io = store, store.io
        self._root = join(store.branch_root, "copy-into")
        self._history = join(self._root, "history")
        self._commits = IdempotentCommits(store, LOAD_USER)

    def next_number(self) -> int:
        """Complete the history of statements that died, and return the number of the next statement.

        REQUIRES: called before `loaded`, so that a statement with a later history gets another number.
        """
        last = self._commits.last()
        if last is None:
            return 0
        done = self._commits.is_committed(last)
        for number, statement in self._plans():
            if number < last or (done and number == last):  # the plan of a larger number has no commit yet
                self._complete(number, statement)
        return last + 1 if done else last

    def loaded(self, files: Iterable[LoadSource]) -> set[LoadSource]:
        """Return the files that have been loaded. A file that has changed since counts as another file."""
        by_prefix: dict[str, list[LoadSource]] = {}
        for file in files:
            by_prefix.setdefault(_prefix(file.path), []).append(file)
        names = [status.name for status in self._io.list(self._history)]
        recorded = [name for name in names if name.rpartition("-")[0] + "-" in by_prefix]
        known = set(parallel_map(self._record, recorded))
        return {file for candidates in by_prefix.values() for file in candidates if file in known}

    def begin(self, number: int, statement: str, files: Sequence[LoadedFile]) -> None:
        """Store the loads of a statement, before its commit.

        Args:
            number: the number from `next_number`.
            statement: the id of the statement, in hexadecimal digits.
            files: the files and their rows.
        """
        plan = {"loadedAt": now_millis(), "files": [asdict(load) for load in files]}
        self._io.write(self._plan_path(number, statement), json.dumps(plan).encode())

    def finish(self, number: int, statement: str) -> bool:
        """Record the loads of a statement after its commit. Return False if another statement took the number.

        Nothing of this statement is in the table then: begin again with `next_number`.
        """
        return self._complete(number, statement)

    def record(self, files: Sequence[LoadedFile]) -> None:
        """Record files from which nothing is to be committed."""
        self._write_records({"loadedAt": now_millis(), "files": [asdict(load) for load in files]}, -1)

    def _complete(self, number: int, statement: str) -> bool:
        """Record the loads of a statement if it has committed its number, and delete its plan."""
        winner, path = self._winner(number), self._plan_path(number, statement)
        if winner is None:
            others = [other for other in self._plans() if other[0] == number and other[1] != statement]
            if others or not self._commits.is_committed(number):
                raise CorruptedError(
                    f"the snapshot of statement {number} of COPY INTO has expired before {hide_secrets(path)} was "
                    "completed, so it is unknown which statement it was: compare the files of the statement with the "
                    "rows of the table, and delete this file"
                )
            winner = (statement, -1)
        won = winner[0] == statement
        if won:
            self._write_records(self._plan(path), winner[1])
            self._io.write(join(self._root, f"committed-{number}"), statement.encode())
            with best_effort("deleting an old file of COPY INTO"):
                for status in self._io.list(self._root):
                    old = _WON.fullmatch(status.name)
                    if old and int(old[1]) < number - 1:
                        self._io.delete(status.path)
        with best_effort("deleting the plan of a COPY INTO"):
            self._io.delete(path)
        return won

    def _winner(self, number: int) -> tuple[str, int] | None:
        """Return the id and the snapshot of the statement that committed a number; `None`: it is not known."""
        try:
            return self._io.read(join(self._root, f"committed-{number}")).decode(), -1
        except FileNotFoundError:
            pass
        for snapshot in self._store.snapshots.all():
            if snapshot.commit_user == LOAD_USER and snapshot.commit_identifier == number:
                statement = (snapshot.properties or {}).get(LOAD_PROPERTY)
                if statement is not None:
                    return statement, snapshot.id
        return None

    def _plans(self) -> list[tuple[int, str]]:
        matches = (_PLAN.fullmatch(status.name) for status in self._io.list(self._root))
        return sorted((int(match[1]), match[2]) for match in matches if match)

    def _plan(self, path: str) -> Mapping[str, Any]:
        try:
            plan: Mapping[str, Any] = json.loads(self._io.read(path))
        except FileNotFoundError:  # another process has completed it
            return {"loadedAt": 0, "files": []}
        return plan

    def _plan_path(self, number: int, statement: str) -> str:
        return join(self._root, f"statement-{number}-{statement}")

    def _record(self, name: str) -> LoadSource | None:
        """Return the file of a record; `None`: the record is deleted."""
        try:
            record = json.loads(self._io.read(join(self._history, name)))
            return LoadSource(str(record["filePath"]), int(record["fileSize"]), int(record["lastModified"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptedError(
                f"{hide_secrets(join(self._history, name))} is not a record of COPY INTO: delete it to load the file "
                "again"
            ) from error

    def _write_records(self, plan: Mapping[str, Any], snapshot_id: int) -> None:
        def write(load: Mapping[str, Any]) -> None:
            file = load["file"]
            record = {
                "filePath": file["path"],
                "fileSize": file["size"],
                "lastModified": file["modified"],
                "loadedAt": plan["loadedAt"],
                "snapshotId": snapshot_id,
                "rowsLoaded": load["rows"],
            }
            name = f"{_prefix(file['path'])}{plan['loadedAt']}"
            self._io.write(join(self._history, name), json.dumps(record).encode())

        list(parallel_map(write, plan["files"]))


def _prefix(path: str) -> str:
    return f"load-{sha256(path.encode()).hexdigest()[:_HASH_DIGITS]}-"
