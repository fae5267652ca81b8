"""Every pair of column types: files of one type, written by both engines, are read as the other type by both alike."""

import struct

import pytest

from paimon_core.errors import InvalidInputError, PaimonError, UnsupportedError
from paimon_core.schema.change import UpdateType
from paimon_core.types.datatype import BINARY_ROOTS, TEXT_ROOTS, DataField
from paimon_core.types.parse import parse_type
from tests.conformance.compare import same
from tests.conformance.filters import draw
from tests.conformance.judge import JudgeError
from tests.conformance.shared_table import SharedTable
from tests.conformance.values import normal, rows

pytestmark = pytest.mark.java

TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(20, 0)",
    "DECIMAL(38, 18)", "CHAR(3)", "VARCHAR(4)", "STRING", "BINARY(2)", "VARBINARY(3)", "BYTES", "DATE", "TIME(0)",
    "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE",
)  # fmt: skip
_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_NUMBERS = (0, 1, -1, 7, -9, 100, 128, -129, 255, 256, 32768, -32769, 99999, 86400, 2**24 + 1, 2**31, 2**53 + 1)
_FLOATS = (
    "NaN", "Infinity", "-Infinity", "-0.0", 0.0, 1.5, -2.25, 0.005, 1.005, -1.005, 999.995, 123456.789, -7.9, 300.7,
    1e7, 1e-3, 9.999e-4, 1e10, 3e38, 0.1, -3e9, 9.3e18, -9.3e18,
)  # fmt: skip
_DAYS = ("0001-01-01", "9999-12-31", "1582-10-04", "1582-10-15", "1969-12-31", "1970-01-01", "2024-02-29")
_CLOCKS = ("00:00:00.000", "23:59:59.000", "10:20:30.500", "10:20:30.120", "10:20:30.123")
_MOMENTS = (
    "1970-01-01T00:00:00.000000000", "1969-12-31T23:59:59.999999999", "1969-12-30T01:02:03.123456789",
    "2024-02-29T10:20:30.123456789", "2024-12-31T23:59:59.500000000", "1700-06-01T12:34:56.789012345",
    "2038-01-19T03:14:08.000000000", "1969-12-31T00:00:00.000000000",
)  # fmt: skip
_FAR = ("0001-01-01T00:00:00.000000000", "9999-12-31T23:59:59.999999999")
_NUMBER_TEXTS = (
    "", "0", "1", "-1", "+1", "+-1", " 1", "1 ", "1.5", "-.5", ".", "-", "5.", "1e3", "5E-3", "0x10", "127", "128",
    "99999999999", "9223372036854775808", "999.995", "-999.994", "12345678901234567890.5", "00012", "-0", "NaN", "nan",
    "-Infinity", "inf", "1f", "2D", "1L", "\t1", "1\n", "a", "\u0661",
)  # fmt: skip
_DATE_TEXTS = (
    "0", "-129", "2024", "2024-01-31", "2024-1-1", "2024-02-30", "2024-13-01", "0001-01-01", "9999-12-31", "1969-12-31",
    "2024-01-31 10:20:30", "2024-01-31T10:20:30", "2024-01-31 10:20:30.1", "2024-01-31 10:20:30.123456789",
    "2024-01-31 1:2:3", "2024-01-31 24:00:00", "1969-12-31 23:59:59.999999", " 2024-01-31", "", "x",
)  # fmt: skip
_TIME_TEXTS = ("10:20:30", "10:20:30.5", "10:20:30.123456", "1:2:3", "10:20", "24:00:00", "23:59:59", "10", "", "x")
_TRUTHS = ("true", "TRUE", "t", "y", "yes", "f", "false", "no", "N", "1", "0", "on", "", " t")
_OTHER_TEXTS = ("", "a", "\u00e9", "\u4e2d\u6587\u5b57", "\U0001f600\U0001f600x", "ab\x00c", "abcdefghij", "  ab  ")


def stored_values(source, target):
    """Values of one type whose cast to the other is worth a look."""
    root, target_root = source.root, target.root
    if root in TEXT_ROOTS:
        texts = {
            "BOOLEAN": _TRUTHS, "DATE": _DATE_TEXTS, "TIME": _TIME_TEXTS, "TIMESTAMP": _DATE_TEXTS,
            "TIMESTAMP_LTZ": _DATE_TEXTS, **dict.fromkeys((*TEXT_ROOTS, *BINARY_ROOTS), _OTHER_TEXTS),
        }.get(target_root, _NUMBER_TEXTS)  # fmt: skip
        return [text for text in texts if len(text) <= source.length]
    if root == "BOOLEAN":
        return [True, False]
    if root in _INTEGERS:
        edge = 2 ** (_INTEGERS[root] - 1)
        if target_root.startswith("TIMESTAMP"):
            edge = min(edge, 2**33)  # seconds; Java wraps around beyond the moments that it has
        return [n for n in (*_NUMBERS, -edge, edge - 1) if -edge <= n < edge]
    if root in ("FLOAT", "DOUBLE"):
        single = root == "FLOAT"
        return [struct.unpack("f", struct.pack("f", n))[0] if single and isinstance(n, float) else n for n in _FLOATS]
    if root == "DECIMAL":
        return _decimals(source.precision, source.scale or 0)
    if root == "BINARY":
        return ["00" * source.length, "61" * source.length]
    if root == "VARBINARY":
        return [text for text in ("", "00", "61", "c3a9", "616263", "616263646566") if len(text) // 2 <= source.length]
    if root == "DATE":
        return [day for day in _DAYS if target_root != "TIMESTAMP" or target.precision <= 6 or "1900" < day < "2200"]
    if root == "TIME":
        return list(_CLOCKS if source.precision else _CLOCKS[:2])
    digits = source.precision or 0
    moments = _MOMENTS if max(digits, target.precision or 0) > 6 else (*_MOMENTS, *_FAR)
    cut = [moment[: 20 + digits] + "0" * (9 - digits) for moment in moments]
    if target_root in ("DATE", "TIME", "INT", "BIGINT") or (target_root == root and (target.precision or 0) < 3):
        cut = [moment for moment in cut if moment > "1970"]  # Java 1.4.2 rounds earlier ones up (test_newer_than_java)
    return [moment + "Z" * (root == "TIMESTAMP_LTZ") for moment in dict.fromkeys(cut)]


def _decimals(precision, scale):
    one, top = 10**scale, 10**precision - 1
    numbers = (
        0,
        1,
        -1,
        top,
        -top,
        49,
        50,
        -50,
        255,
        one,
        -one - 1,
        127 * one,
        128 * one,
        3 * one // 2,
        2**64 * one + 7,
    )
    texts = [(str(abs(n)).rjust(scale + 1, "0"), n < 0) for n in numbers if abs(n) <= top]
    return ["-" * minus + (f"{t[:-scale]}.{t[-scale:]}" if scale else t) for t, minus in texts]


def zones_matter(source, target):
    """Casts that Java makes in the zone of its machine, and we refuse."""
    if "TIMESTAMP_LTZ" not in (source.root, target.root) or source.root == target.root:
        return False
    return target.root not in _INTEGERS


class Matrix:
    """A table with one column of a source type for each target type, one value in each partition."""

    def __init__(self, judge, name, source, file_format):
        self.table, self.source = SharedTable(judge, name), parse_type(source)
        self.targets = [t for t in TYPES if t != source]
        self.stored = [stored_values(self.source, parse_type(t)) for t in self.targets]
        columns = [["i", "INT"], *([f"c{j}", source] for j in range(len(self.targets)))]
        options = {"file.format": file_format, "metadata.stats-mode": "full"}
        self.table.java("create_table", fields=columns, partition_keys=["i"], options=options)
        self.count = max(map(len, self.stored)) + 1
        lines = [[v[i] if i < len(v) else None for v in self.stored] for i in range(self.count)]
        made = [{"i": i, **{f"c{j}": v for j, v in enumerate(line)}} for i, line in enumerate(lines)]
        self.table.java("write", rows=made[::2])
        self.table.we_write([["+I", row] for row in made[1::2]])

    def retyped(self, j, rng):
        """Change one column by either engine; False: both refuse it, or we do so because of the zone."""
        column, target = f"c{j}", self.targets[j]
        change = {"op": "update_type", "name": column, "type": target}
        try:
            if rng.random() < 0.5:
                self.table.ours().alter([UpdateType(column, target)])
            else:
                self.table.java("alter_table", changes=[change])
        except InvalidInputError:
            if not zones_matter(self.source, parse_type(target)):
                with pytest.raises(JudgeError):
                    self.table.java("alter_table", changes=[change])
            return False
        except JudgeError:
            with pytest.raises(InvalidInputError):
                self.table.ours().alter([UpdateType(column, target)])
            return False
        return True

    def compared(self, j):
        """Compare the values of a column; return ours, None if there is a value that we refuse."""
        target = parse_type(self.targets[j])
        field = DataField(-1, f"c{j}", target)
        ours, theirs = self._ours(field), self._theirs(field)
        about = f"{self.source} -> {target}"
        if zones_matter(self.source, target):
            assert isinstance(ours, UnsupportedError), about
            return None
        if isinstance(ours, list) and isinstance(theirs, list):
            same(ours, theirs, about)
            return ours
        for i in range(len(self.stored[j])):
            one, other = self._ours(field, filter=f"i = {i}"), self._theirs(field, partition={"i": str(i)})
            if isinstance(one, list):
                assert isinstance(other, list), f"{about}: we read {self.stored[j][i]!r} as {one}, Java: {other}"
                same(one, other, f"{about}: {self.stored[j][i]!r}")
            elif isinstance(other, list):  # a rare spelling that we refuse
                assert self.source.root in TEXT_ROOTS, f"{about}: {self.stored[j][i]!r} is {other} to Java, {one}"
        return None

    def _ours(self, field, **how):
        table = self.table.ours()
        try:
            return rows(table.to_arrow(columns=["i", field.name], **how), [table.schema.field("i"), field])
        except PaimonError as error:
            return error

    def _theirs(self, field, **how):
        try:
            found = self.table.java("read", projection=["i", field.name], **how)["rows"]
        except JudgeError as error:
            return error
        return [[row[1], normal(row[2], field.type)] for row in found]

    def check_filters(self, j, found, rng):
        """Ask for rows by the changed column: no file may be left out by what it held before the cast."""
        fields = [self.table.ours().schema.field("i"), DataField(-1, f"c{j}", parse_type(self.targets[j]))]
        by_name = [{"i": row[0], fields[1].name: row[1]} for row in found]
        for _ in range(3):
            text, says = draw(rng, fields[1:], by_name, depth=1)
            kept = [row for row, named in zip(found, by_name, strict=True) if says(named) is True]
            got = rows(self.table.ours().to_arrow(columns=["i", fields[1].name], filter=text), fields)
            same(got, kept, f"{self.source} -> {fields[1].type} where {text}")


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.cases(3)
def test_every_cast_agrees_with_java(judge, name, rng, source):
    matrix = Matrix(judge, name, source, rng.choice(("parquet", "avro")) if "(9)" not in source else "parquet")
    for j in range(len(matrix.targets)):
        if matrix.retyped(j, rng):
            found = matrix.compared(j)
            if found:
                matrix.check_filters(j, found, rng)
