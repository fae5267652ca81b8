"""The columns of a table after ALTER TABLE, as expressions of the columns before it."""

from tests.support.sql_tables import STRUCT, Column


def moved(old: Column, new: Column, path: str) -> str:
    """Return the expression for a column after ALTER TABLE, from the column before it."""
    if new.kind == STRUCT:
        before = {one.key: one for one in old.fields}
        fields = (
            f"'{one.name}', "
            + (
                moved(before[one.key], one, f"{path}.`{before[one.key].name}`")
                if one.key in before
                else f"CAST(NULL AS {one.type})"
            )
            for one in new.fields
        )
        return f"CASE WHEN {path} IS NULL THEN NULL ELSE named_struct({', '.join(fields)}) END"
    return path if old.kind == new.kind else f"CAST({path} AS {new.kind})"


def projection(old: list[Column], new: list[Column]) -> list[tuple[str, str, str]]:
    """Return name, type and expression of each new column, from a table with the old columns."""
    before = {one.key: one for one in old}
    return [
        (
            one.name,
            one.type,
            moved(before[one.key], one, f"`{before[one.key].name}`")
            if one.key in before
            else f"CAST(NULL AS {one.type})",
        )
        for one in new
    ]
