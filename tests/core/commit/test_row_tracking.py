"""Row ids that a commit assigns to data files, and to the blob files that belong to them."""

from dataclasses import replace

from paimon_core.commit.changes import Changes
from paimon_core.commit.row_tracking import with_row_ids
from paimon_core.manifest.data_file import FileSource
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.options.option import Options
from paimon_core.snapshot.snapshot import CommitKind
from tests.support.manifests import data_file


def ids(*files, partitions="", start=None):
    """First row ids of files (name, rows, column of blobs or None), in the order the snapshot has them."""
    entries = []
    for at, (name, rows, column) in enumerate(files):
        file = data_file(name, 0, rows - 1, sequence=(0, 0))
        columns = None if column is None else (column,)
        file = replace(file, row_count=rows, first_row_id=None, file_source=FileSource.APPEND, write_cols=columns)
        entries.append(ManifestEntry(ADD, partitions[at].encode() if partitions else b"", 0, -1, file))
    options = Options({"row-tracking.enabled": "true"})
    changes, following = with_row_ids(options, Changes(CommitKind.APPEND, tuple(entries)), 7, start)
    return [(e.file.file_name, e.file.first_row_id) for e in changes.entries], following


def test_files_of_blobs_have_ids_of_file_before_them():
    files = [("a", 3, None), ("x.blob", 2, "x"), ("y.blob", 1, "x"), ("z.blob", 3, "z"), ("b", 2, None)]
    actual = [("a", 10), ("x.blob", 10), ("y.blob", 12), ("z.blob", 10), ("b", 13)]
    assert ids(*files, start=10) == (actual, 15)
    assert ids(*files, ("w.blob", 2, "x"), start=10) == ([*actual, ("w.blob", 13)], 15)


def test_file_without_blob_files_gets_row_ids():
    assert ids(("a", 3, None), ("b", 2, None), ("x.blob", 2, "x"))[0] == [("a", 0), ("b", 3), ("x.blob", 3)]


def test_files_of_partition_stay_together():
    files = [("a", 1, None), ("a.blob", 1, "x"), ("b", 2, None), ("b.blob", 2, "x"), ("c", 4, None), ("c.blob", 4, "x")]
    actual = [("a", 0), ("a.blob", 0), ("c", 1), ("c.blob", 1), ("b", 5), ("b.blob", 5)]
    assert ids(*files, partitions="ppqqpp") == (actual, 7)
