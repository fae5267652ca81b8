"""The partitions of a format table, as its directories or the entries of its catalog name them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from posixpath import basename, dirname

from paimon_core.errors import CorruptedError
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.format_table.directories import (
    FormatPartition,
    is_hidden,
    list_partitions,
    matching,
    parsed_value,
    partition_name,
    text_of_name,
)
from paimon_core.format_table.registry import PartitionCounts, PartitionRegistry, Spec
from paimon_core.format_table.settings import FormatTableSettings
from paimon_core.format_table.write import StagedFile
from paimon_core.options import warn_once
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import restrict
from paimon_core.store.file_store import now_millis
from paimon_core.types.datatype import DataField


@dataclass(frozen=True, slots=True)
class TablePartitions:
    """The partitions of a format table, from its registry, or from its directories if it has no registry.

    Args:
        io: the storage.
        root: the directory of the table.
        keys: the partition columns.
        settings: the settings of the table.
        registry: the entries of the catalog; `None`: each directory is a partition.
        name: ``database.table``, for messages.
    """

    io: FileIO
    root: str
    keys: tuple[DataField, ...]
    settings: FormatTableSettings
    registry: PartitionRegistry | None
    name: str

    def all(self, predicate: Predicate | None = None) -> list[FormatPartition]:
        """Return the partitions whose values satisfy the tests of a filter, in the order of their paths.

        ``predicate``: a bound predicate, which may also be about other columns; `None`: all partitions. Raises as
        `list_partitions`, and CorruptedError for an entry of the catalog that names no directory of the table.
        """
        if self.registry is None:
            return self.directories(predicate)
        found = {partition.path: partition for partition in map(self._of_spec, self.registry.specs())}
        if not found:
            self._warn_of_directories()
        tests = None if predicate is None else restrict(predicate, {key.name for key in self.keys})
        partitions = list(found.values())
        chosen = partitions if tests is None else matching(partitions, self.keys, tests)
        return sorted(chosen, key=lambda partition: partition.path)

    def directories(self, predicate: Predicate | None = None) -> list[FormatPartition]:
        """Return the partitions that the directories name, with entries in the catalog or without."""
        return list_partitions(self.io, self.root, self.keys, self.settings, predicate)

    def spec_of(self, directory: str) -> dict[str, str]:
        """Return the spec of the partition in a directory."""
        spec: dict[str, str] = {}
        for key in reversed(self.keys):
            spec[key.name] = text_of_name(basename(directory), self.settings)
            directory = dirname(directory)
        return {key.name: spec[key.name] for key in self.keys}

    def announce(self, files: Sequence[StagedFile], replaced: Iterable[FormatPartition] = (), *, total: bool) -> None:
        """Register the partitions of new files, with what the files hold.

        Args:
            files: the new files.
            replaced: partitions that lose their old files; each has an entry or gets one with the new files.
            total: True if the partitions hold nothing else.
        """
        if self.registry is None or not self.keys:
            return
        now = now_millis()
        groups: dict[str, list[StagedFile]] = {partition.path: [] for partition in replaced}
        for file in files:
            groups.setdefault(dirname(file.path), []).append(file)
        counts = [
            PartitionCounts(
                self.spec_of(directory),
                sum(file.rows for file in group),
                sum(file.size for file in group),
                len(group),
                now,
            )
            for directory, group in groups.items()
        ]
        if counts:
            self.registry.register([each.spec for each in counts], counts, total=total)

    def repair(self, *, add: bool, drop: bool) -> tuple[list[Spec], list[Spec]]:
        """Register directories, and remove the entries of partitions without a directory; return both.

        Args:
            add: True to register the partitions that only have a directory.
            drop: True to remove the entries of partitions that have no directory.

        REQUIRES: a registry. No file changes. Raises InvalidInputError for a directory that names no value.
        """
        assert self.registry is not None
        found: dict[str, Spec] = {each.path: self.spec_of(each.path) for each in self.directories()}
        known = {self._of_spec(spec).path: spec for spec in self.registry.specs()}
        added = [found[path] for path in sorted(found.keys() - known.keys())] if add else []
        dropped = [known[path] for path in sorted(known.keys() - found.keys())] if drop else []
        if added:
            self.registry.register(added)
        if dropped:
            self.registry.unregister(dropped)
        return added, dropped

    def _warn_of_directories(self) -> None:
        """Warn if the table has directories, but the catalog lists no partition: their rows are not read."""
        names = [entry.name for entry in self.io.list(self.root) if entry.is_directory and not is_hidden(entry.name)]
        if names:
            warn_once(
                f"the catalog lists no partitions of {self.name}, but its directory has {min(names)!r}, whose rows are "
                "not read: run MSCK REPAIR TABLE, or FormatTable.repair_partitions, if it is a partition"
            )

    def _of_spec(self, spec: Spec) -> FormatPartition:
        """Return the partition of an entry of the catalog."""
        names, values = [], []
        for key in self.keys:
            text = spec.get(key.name)
            if not text or len(spec) != len(self.keys) or (self.settings.only_values and text in (".", "..")):
                keys = ", ".join(each.name for each in self.keys)
                raise CorruptedError(
                    f"the catalog lists the partition {dict(spec)} of {self.name}, which has the partition columns "
                    f"{keys}: remove the entry, or repair it with the tool that made it"
                )
            names.append(partition_name(text, key.name, self.settings))
            values.append(parsed_value(text, key, self.settings, f"the partition {dict(spec)} in the catalog"))
        return FormatPartition(join(self.root, *names), tuple(values))
