import pytest

from paimon_core.errors import CorruptedError
from paimon_core.lsm.levels import Levels
from tests.support.manifests import KEY, data_file


def names(files):
    return [f.file_name for f in files]


def test_level_0_is_newest_first():
    files = [
        data_file("old", sequence=(0, 3)),
        data_file("tie-b", sequence=(5, 9), creation_time=2),
        data_file("tie-a", sequence=(5, 9), creation_time=2),
        data_file("tie-early", sequence=(5, 9), creation_time=1),
        data_file("tie-longer", sequence=(4, 9), creation_time=7),
    ]
    levels = Levels.of(files, KEY, 6)
    assert names(levels.files[0]) == ["tie-longer", "tie-early", "tie-a", "tie-b", "old"]
    assert [names(run.files) for run in levels.runs] == [[n] for n in names(levels.files[0])]
    assert levels.max_sequence_number == 9


def test_higher_levels_are_runs_in_key_order():
    files = [data_file("c", 20, 29, level=2), data_file("a", 0, 9, level=2), data_file("z", 5, 25, level=4)]
    levels = Levels.of(files, KEY, 3)
    assert levels.max_level == 4
    assert [(run.level, names(run.files)) for run in levels.runs] == [(2, ["a", "c"]), (4, ["z"])]
    assert levels.runs[0].size == 2000
    assert levels.runs[0].row_count == 20
    assert levels.runs[0].max_sequence_number == 9


def test_there_are_always_two_levels():
    empty = Levels.of([], KEY, 1)
    assert empty.max_level == 1
    assert empty.max_sequence_number == -1
    assert empty.runs == ()


def test_overlap_above_level_0_is_refused():
    with pytest.raises(CorruptedError, match="a and b of level 1 overlap"):
        Levels.of([data_file("a", 0, 9, level=1), data_file("b", 9, 12, level=1)], KEY, 2)


def test_apply_replaces_compacted_files():
    before = Levels.of([data_file("a"), data_file("b", 20, 30), data_file("up", 40, 50)], KEY, 3)
    added = [data_file("ab", 0, 30, level=2), data_file("up", 40, 50, level=2)]
    after = before.apply(before.all_files, added, KEY)
    assert [names(level) for level in after.files] == [[], [], ["ab", "up"]]
