"""Tables the Java engine can make and this engine does not, or not fully, cover: read right or refused by name.

For every feature: what we read equals what Java reads, or an UnsupportedError says which feature is missing; the same
for a write of ours. ``reads`` and ``writes`` say what is expected today, so that a refusal that is lifted is noticed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from tests.conformance.compare import TALLY
from tests.conformance.domain import value
from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java
COLUMNS = (("k", "INT NOT NULL"), ("p", "STRING NOT NULL"), ("n", "INT"), ("s", "STRING"), ("t", "TIMESTAMP(3)"))


@dataclass(frozen=True)
class Feature:
    """A table that uses something special; ``refusal`` is a pattern that a refusal must hold."""

    name: str
    options: Mapping[str, str]
    refusal: str = ""
    reads: bool = False
    writes: bool = False
    keys: Sequence[str] = ("k",)
    partitions: Sequence[str] = ()
    columns: Sequence[tuple[str, str]] = COLUMNS
    kinds: Sequence[str] = ("+I", "+U", "-D")
    act: Callable[[SharedTable], None] | None = None
    bucket: str | None = "2"
    given: Mapping[str, str] = field(default_factory=dict)
    """Options of our reads and writes."""

    @property
    def definition(self) -> dict[str, Any]:
        """Arguments of the judge's create_table."""
        bucket = {} if self.bucket is None else {"bucket": self.bucket}
        return {
            "fields": [list(c) for c in self.columns],
            "primary_keys": list(self.keys),
            "partition_keys": list(self.partitions),
            "options": {**bucket, **self.options},
        }


@dataclass(frozen=True)
class Append(Feature):
    """The same for tables without a primary key."""

    keys: Sequence[str] = ()
    kinds: Sequence[str] = ("+I",)
    bucket: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def delete_some(table: SharedTable) -> None:
    """Delete by position, as SQL DELETE does on an append table."""
    table.java("append_delete", where={"k": 3})


def switch_off(key: str, then: str = "false") -> Callable[[SharedTable], None]:
    """Change an option after files were written under it."""
    return lambda table: table.java("alter_table", changes=[{"op": "set_option", "key": key, "value": then}])


EVOLVING = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
VARIANT = (("k", "INT NOT NULL"), ("v", "VARIANT"))
FEATURES = (
    # merging
    Feature("deletion-vectors", {"deletion-vectors.enabled": "true"}, reads=True, writes=True),
    Feature(
        "deletion-vectors-64",
        {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"},
        reads=True,
        writes=True,
    ),
    Append(
        "append-deletion-vectors",
        options={"deletion-vectors.enabled": "true"},
        refusal="deletion-vectors",
        act=delete_some,
        reads=True,
        writes=True,
    ),
    Feature("changelog-input", {"changelog-producer": "input"}, reads=True, writes=True),
    Feature("changelog-full-compaction", {"changelog-producer": "full-compaction"}, reads=True, writes=True),
    Feature("changelog-lookup", {"changelog-producer": "lookup"}, reads=True, writes=True),
    Feature("force-lookup", {"force-lookup": "true"}, reads=True, writes=True),
    Feature(
        "snapshot-ordering",
        {"sequence.snapshot-ordering": "true", "write-only": "true"},
        "sequence.snapshot-ordering",
        reads=True,
    ),
    Feature(
        "expiry-of-rows",
        {"record-level.expire-time": "1 d", "record-level.time-field": "t"},
        "record-level",
        reads=True,
        writes=True,
    ),
    Feature(
        "clustered-keys",
        {"pk-clustering-override": "true", "clustering.columns": "n", "deletion-vectors.enabled": "true"},
        "pk-clustering-override|deletion-vectors",
    ),
    # buckets
    # rows with an identity, columns in files of their own
    Append("row-tracking", options={"row-tracking.enabled": "true"}, reads=True, writes=True),
    Append("data-evolution", options=EVOLVING, reads=True, writes=True),
    Append(
        "blob",
        options={**EVOLVING, "blob-field": "b"},
        reads=True,
        writes=True,
        columns=(("k", "INT"), ("b", "BLOB")),
    ),
    Append("variant", reads=True, writes=True, columns=VARIANT),
    # files
    Append("csv", options={"file.format": "csv", "file.compression": "none"}, reads=True, writes=True),
    Append("json", options={"file.format": "json", "file.compression": "none"}, reads=True, writes=True),
    Append(
        "text",
        options={"file.format": "text", "file.compression": "none"},
        refusal="text",
        columns=(("s", "STRING NOT NULL"),),
    ),
    Feature("orc-manifests", {"manifest.format": "orc"}, "manifest.format", reads=True),
    Feature("parquet-manifests", {"manifest.format": "parquet"}, "manifest.format", reads=True),
    Append(
        "external-paths",
        options={"data-file.external-paths": "file://{elsewhere}", "data-file.external-paths.strategy": "round-robin"},
        refusal="external-paths",
        reads=True,
        given={"data-file.external-paths.allowed": "{elsewhere}"},
    ),
    Feature(
        "external-paths-keyed",
        {
            "data-file.external-paths": "file://{elsewhere}/a,file://{elsewhere}/b",
            "data-file.external-paths.strategy": "round-robin",
            "changelog-producer": "lookup",
            "deletion-vectors.enabled": "true",
            "index-file-in-data-file-dir": "true",
            "file-index.bloom-filter.columns": "n",
            "file-index.in-manifest-threshold": "1 b",
        },
        refusal="external-paths",
        reads=True,
        partitions=("p",),
        keys=("k", "p"),
        given={"data-file.external-paths.allowed": "{elsewhere}"},
    ),
    Feature(
        "iceberg",
        {"metadata.iceberg.storage": "table-location", "metadata.iceberg.format-version": "3"},
        "iceberg",
        reads=True,
    ),
    # options that steer maintenance only: nothing to refuse
    Feature("changelog-files", {"changelog-file.format": "avro"}, reads=True, writes=True),
    Append(
        "clustering", options={"clustering.columns": "k,n", "clustering.strategy": "zorder"}, reads=True, writes=True
    ),
    Feature("every-commit-compacts", {"full-compaction.delta-commits": "1"}, reads=True, writes=True),
    Append(
        "expiring-partitions",
        options={"partition.expiration-time": "9999 d"},
        reads=True,
        writes=True,
        partitions=("p",),
    ),
    Feature(
        "automatic-tags",
        {"tag.automatic-creation": "process-time", "tag.creation-period": "daily"},
        reads=True,
        writes=True,
    ),
    Feature(
        "few-snapshots", {"snapshot.num-retained.max": "2", "snapshot.num-retained.min": "1"}, reads=True, writes=True
    ),
)


def written_by_java(table: SharedTable, feature: Feature, rng) -> None:
    """Commits with compactions in between."""
    for compaction in (None, "minor", None, "full", None):
        table.java("write", rows=rows_of(feature, rng))
        if compaction:
            table.java("compact", kind=compaction)


def rows_of(feature: Feature, rng, count: int = 20) -> list[list[Any]]:
    found = []
    for _ in range(count):
        row = {name: _value(rng, text) for name, text in feature.columns}
        row.update({n: v for n, v in (("k", rng.randrange(9)), ("p", rng.choice("ab"))) if n in row})
        found.append([rng.choice(feature.kinds), row])
    return found


def _value(rng, text: str) -> Any:
    match text:
        case "VARIANT":
            return rng.choice(('{"a":1}', "[1,2]", None))
        case "BLOB":
            return rng.choice(("00ff", None))
        case "TIMESTAMP(3)":
            return "2099-01-01T00:00:00.001000000"
        case "STRING" | "STRING NOT NULL":
            return rng.choice(("x", "y z", "q"))
    return value(rng, parse_type(text), "orc")


def allowed(action: Callable[[], Any], feature: Feature, what: str, expected: bool) -> None:
    """The engine does it if that is expected; else its refusal is an UnsupportedError with the feature's name."""
    refusal = None
    try:
        action()
    except UnsupportedError as error:
        refusal = str(error)
    TALLY.comparisons += 1
    if refusal is None:
        assert expected, f"{what} is possible now and right: say so in FEATURES"
    else:
        assert not expected, f"{what} is refused, but was possible: {refusal}"
        assert re.search(feature.refusal, refusal), f"{what} is refused without naming the feature"


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
@pytest.mark.cases(5)
def test_right_or_refused_by_name(judge, name, rng, feature, tmp_path):
    definition = feature.definition
    definition["options"] = {k: v.format(elsewhere=tmp_path) for k, v in definition["options"].items()}
    given = {k: v.format(elsewhere=tmp_path) for k, v in feature.given.items()}
    table = SharedTable(judge, name, options=given)
    table.java("create_table", **definition)
    written_by_java(table, feature, rng)
    if given:
        with pytest.raises(InvalidInputError, match=next(iter(given))):
            Table.open(table.path).to_arrow()
    if feature.act:
        feature.act(table)
    allowed(table.agree_everywhere, feature, "reading", feature.reads)

    def write() -> None:
        table.ours().writer().close()
        table.we_write(rows_of(feature, rng))
        table.agree()
        table.java("compact", kind="full")
        table.java("write", rows=rows_of(feature, rng))
        table.agree_everywhere()

    allowed(write, feature, "writing", feature.writes)


def test_deletion_vectors_switched_off(judge, name, rng):
    """Java shows the rows again once the option is off; here they stay deleted."""
    feature = Append("", options={"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"})
    table = SharedTable(judge, name)
    table.java("create_table", **feature.definition)
    table.java("write", rows=rows_of(feature, rng))
    delete_some(table)
    before = table.agree_everywhere()
    switch_off("deletion-vectors.enabled")(table)
    assert len(table.java_rows(table.fields_at())) > len(before)
    assert sorted(table.our_rows(table.fields_at()), key=repr) == sorted(before, key=repr)


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_change_of_changelog_producer(judge, name, rng, producer):
    feature = Feature("", {})
    table = SharedTable(judge, name)
    table.java("create_table", **feature.definition)
    table.java("write", rows=rows_of(feature, rng))
    switch_off("changelog-producer", producer)(table)
    written_by_java(table, feature, rng)
    switch_off("changelog-producer", "none")(table)
    table.java("write", rows=rows_of(feature, rng))
    table.agree_everywhere()
    table.we_write(rows_of(feature, rng))
    table.java("compact", kind="full")
    table.agree_everywhere()


def test_buckets_are_rescaled(judge, name, rng):
    """Partitions written before and after a change of the bucket number, each found by its own count."""
    feature = Feature("", {}, keys=("k", "p"), partitions=("p",))
    table = SharedTable(judge, name)
    table.java("create_table", **feature.definition)
    table.java("write", rows=rows_of(feature, rng))
    switch_off("bucket", "5")(table)
    table.agree_everywhere()
    with pytest.raises(Exception, match=r"(?i)bucket"):
        table.we_write(rows_of(feature, rng))
    table.agree_everywhere()
    only_a = [[kind, {**row, "p": "a"}] for kind, row in rows_of(feature, rng) if kind != "-D"]
    table.java("write", rows=only_a, overwrite={"p": "a"}, options={"dynamic-partition-overwrite": "false"})
    rows = table.agree_everywhere()
    for k in range(9):
        actual = table.our_rows(table.fields_at(), filter=f"k = {k}")
        assert sorted(map(str, actual)) == sorted(str(row) for row in rows if row[0] == k)
    table.we_write(only_a)
    table.agree_everywhere()
    others = [row for _, row in only_a]
    table.ours().overwrite(table.arrow([{**row, "p": "b"} for row in others]), {"p": "b"})
    table.we_write([["+I", {**row, "p": "b"}] for row in others])
    table.java("write", rows=[["+I", {**row, "p": "b"}] for row in others])
    table.agree_everywhere()
