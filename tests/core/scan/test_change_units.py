"""The change units of a snapshot: the cases of `change_units.txt`."""

from paimon_core.errors import PaimonError
from paimon_core.scan.change_units import ChangeUnit, all_units, changed_units
from tests.support.text_cases import text_cases
from tests.support.text_tables import ROOT, TextTable


def units(text: str) -> str:
    first, *lines, question = text.splitlines()
    table = TextTable(first)
    for line in lines:
        assert table.commit(line) is not None, line
    store = table.store
    newest = store.snapshots.latest()
    try:
        if question == "all rows":
            result = all_units(store, newest)
        else:
            result = changed_units(store, newest, lambda: store.snapshots.get(newest.id - 1))
    except PaimonError as error:
        return f"{type(error).__name__}: {error}".replace(ROOT, "TABLE")
    return "\n".join(described(table, unit) for unit in result)


def described(table: TextTable, unit: ChangeUnit) -> str:
    split = unit.split
    path = table.store.partition_path(split.partition)
    names = " ".join(f.file_name for f in split.files)
    merged = "" if split.raw_convertible else ", merged"
    return f"{path} bucket {split.bucket}: {unit.source.value} {names}{merged}".lstrip()


@text_cases(__file__, "change_units.txt")
def test_change_units_text_cases(case, check_case):
    check_case(case, units)
