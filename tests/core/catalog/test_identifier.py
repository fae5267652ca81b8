import pytest

from paimon_core.catalog.identifier import Identifier
from paimon_core.errors import InvalidInputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db.t", Identifier("db", "t")),
        ("`my.db`.`t`", Identifier("my.db", "t")),
        ("db.t$snapshots", Identifier("db", "t", None, "snapshots")),
        ("db.t$Snapshots", Identifier("db", "t", None, "snapshots")),
        ("db.t$branch_b1", Identifier("db", "t", "b1")),
        ("db.t$branch_B_1", Identifier("db", "t", "B_1")),
        ("db.t$branch_b1$files", Identifier("db", "t", "b1", "files")),
        ("db.Ünï cödé", Identifier("db", "Ünï cödé")),
    ],
)
def test_identifier_is_parsed_and_printed(text, expected):
    actual = Identifier.parse(text)
    assert actual == expected
    assert Identifier.parse(str(actual).replace("my.db", "`my.db`")) == actual


@pytest.mark.parametrize(
    "text",
    ["", "t", ".t", "db.", "a.b.c", "db.t$", "db.$snapshots", "db.t$branch_", "db.t$a$b", "db.t$branch_a$b$c",
     "db.a/b", "db...", "../x.t", "db.`..`", "db.`", "db. "],
)  # fmt: skip
def test_wrong_names_are_refused(text):
    with pytest.raises(InvalidInputError):
        Identifier.parse(text)
