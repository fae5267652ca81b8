"""A random game: a SELECT returns the same rows natively, through Python, and from a Parquet copy of the rows."""

import random

import pytest

from paimon_spark.sql.reads import driver_rows, masks, native
from paimon_spark.sql.session_options import NATIVE_READS
from tests.spark.conftest import MODE
from tests.support.draws import rounds
from tests.support.sql_tables import FAR, VALUES, RandomTable

pytestmark = [pytest.mark.spark, pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session")]
KINDS = ["'bucket' = '-1'", "'deletion-vectors.enabled' = 'true'", "'bucket' = '2', 'bucket-key' = 'id'"]
KEYED = ["'bucket' = '1'", "'bucket' = '2'", "'bucket' = '2', 'deletion-vectors.enabled' = 'true'", "'bucket' = '-1'"]


class Game:
    """A table ``t`` and, at every moment that is kept, a view of a copy of its rows."""

    def __init__(self, sql, rng, path, file_format, far, merged):
        self.sql, self.rng, self.path = sql, rng, path
        self.keyed = merged or rng.random() < 0.35
        # ORC cannot store drawn moments before 1970 with microseconds, nor blanks at the end of a CHAR.
        kinds = [kind for kind in VALUES if file_format == "parquet" or not kind.startswith(("TIMESTAMP", "CHAR"))]
        self.model = RandomTable(rng, [*kinds, *[kind for kind in kinds if kind in FAR] * 4] if far else kinds, far=far)
        self.log, self.moments, self.ids, self.copies = [], {}, 0, 0
        columns = ", ".join(
            f"`{column.name}` {column.type}{' NOT NULL' if self.is_key(column) else ''}"
            for column in self.model.columns
        )
        partitions = ", ".join(column.name for column in self.model.partition_columns)
        by = f"PARTITIONED BY ({partitions})" if partitions else ""
        options = (
            rng.choice(KEYED[:2] if merged else KEYED if self.keyed else KINDS) + f", 'file.format' = '{file_format}'"
        )
        if self.keyed:
            options += f", 'primary-key' = '{','.join(['id', *filter(None, [partitions.replace(' ', '')])])}'"
        # Of keyed tables with deletion vectors only compacted files are read, so these compact.
        written = "" if self.keyed and "deletion-vectors" in options else ", 'write-only' = 'true'"
        options += written if merged else rng.choice(["", written, ", 'file-index.bloom-filter.columns' = 'id'"])
        self.run(f"CREATE TABLE t ({columns}) {by} TBLPROPERTIES ({options})")

    def is_key(self, column):
        return self.keyed and column.name[0] in "ip"

    def run(self, statement):
        self.log.append(statement)
        return self.sql(statement)

    def step(self):
        """Change the table and its model."""
        kind = self.rng.choice(["insert", "insert", "evolve", "evolve", "delete", "compact", "overwrite"])
        getattr(self, f"_{kind}" if kind != "insert" else kind)()
        self.copy(kind == "insert")

    def insert(self):
        model, rng = self.model, self.rng
        count = rng.randrange(1, 12)
        if self.keyed and self.ids and rng.random() < 0.7:
            ids = rng.sample(range(self.ids), min(count, self.ids))
        else:
            ids = list(range(self.ids, self.ids + count))
            self.ids += count
        rows = model.new_rows(ids)
        if self.keyed:
            for row in rows:
                for column in model.partition_columns:
                    row[column.key] = row[column.key] or self.not_null(column)
        self.run(f"INSERT INTO t {model.select(rows)}")
        if self.keyed:
            new = {self.key(row) for row in rows}
            model.rows = [row for row in model.rows if self.key(row) not in new]
        model.rows = model.rows + rows

    def not_null(self, column):
        while (value := self.model.value(column)) is None:
            pass
        return value

    def key(self, row):
        return (row[0], *(row[column.key] for column in self.model.partition_columns))

    def _evolve(self):
        clauses = self.model.evolve()
        if clauses:
            self.run(f"ALTER TABLE t {clauses}")

    def _delete(self):
        modulus = self.rng.randrange(2, 5)
        self.run(f"DELETE FROM t WHERE id % {modulus} = 1")
        self.model.rows = [row for row in self.model.rows if int(row[0]) % modulus != 1]

    def _compact(self):
        self.run("CALL sys.compact(table => 't')")

    def _overwrite(self):
        if not self.model.rows or self.rng.random() < 0.6:
            return self.insert()
        rows = self.model.new_rows([self.ids]) if not self.keyed else []
        if rows and not self.model.partitions:
            self.ids += 1
            self.run(f"INSERT OVERWRITE t {self.model.select(rows)}")
            self.model.rows = rows
        return None

    def copy(self, committed):
        """Write the rows of the model to Parquet and name them ``copy``; perhaps keep the moment.

        A moment has the columns of its snapshot: a change of the columns without a commit is not in it.
        """
        self.copies += 1
        path = f"{self.path}/{self.copies}"
        self.sql.spark.sql(self.model.select(self.model.rows)).coalesce(1).write.parquet(path)
        self.sql.spark.read.parquet(path).createOrReplaceTempView(f"copy{self.copies}")
        self.sql.spark.read.parquet(path).createOrReplaceTempView("copy")
        kind = self.rng.random() if committed else 1
        if kind < 0.6:
            self.run(f"ALTER TABLE t CREATE TAG tag{self.copies}")
            self.moments[f"t VERSION AS OF 'tag{self.copies}'"] = f"copy{self.copies}"
        if kind < 0.2:
            self.run(f"CALL sys.create_branch('t', 'b{self.copies}', 'tag{self.copies}')")
            self.moments[f"`t$branch_b{self.copies}`"] = f"copy{self.copies}"

    def query(self):
        """Return a query with {t} for the table; and whether zeros of both signs are one."""
        rng, model = self.rng, self.model
        names = [f"`{column.name}`" for column in model.columns]
        some = ", ".join(rng.sample(names, rng.randrange(1, len(names) + 1)))
        leaf = rng.choice(model.leaves())[0]
        where = rng.choice(["", f"WHERE {model.condition()}", f"WHERE {model.condition()}"])
        group = rng.choice([column.name for column in model.partition_columns] or ["id"])
        return rng.choice(
            [
                (f"SELECT {some} FROM {{t}} {where}", False),
                (f"SELECT {some} FROM {{t}} {where}", False),
                (f"SELECT id, {leaf} AS leaf FROM {{t}} {where}", False),
                (f"SELECT * FROM {{t}} {where}", False),
                (
                    f"SELECT id, {leaf} AS leaf FROM {{t}} {where} ORDER BY {leaf} {rng.choice(ORDERS)}, id LIMIT 3",
                    False,
                ),
                (f"SELECT count(*), count({leaf}), min({leaf}), max({leaf}) FROM {{t}} {where}", True),
                (f"SELECT {group}, count(*), min({leaf}), max(id) FROM {{t}} {where} GROUP BY {group}", True),
                (f"SELECT DISTINCT {leaf} AS leaf FROM {{t}} {where}", True),
                (
                    f"SELECT a.id, b.* FROM {{t}} a JOIN {{t}} b ON a.{group} <=> b.{group} "
                    f"WHERE a.id % 3 = 1 AND b.{group} IS NOT NULL",
                    False,
                ),
                (f"SELECT {some} FROM {{t}} a WHERE {group} IN (SELECT {group} FROM {{t}} b WHERE b.id < 4)", False),
                (f"SELECT id FROM {{t}} a WHERE id NOT IN (SELECT id FROM {{t}} b {where})", False),
            ]
        )

    def answer(self, query, source, zeros):
        text = query.replace("{t}", source)
        if self.model.far:  # Python has no such moments
            text = f"SELECT CAST(struct(*) AS STRING) FROM ({text})"
        rows = sorted(map(repr, self.sql(text)))
        return [row.replace("-0.0", "0.0") for row in rows] if zeros else rows

    def check(self):
        """Compare one query."""
        source, copy = "t", "copy"
        if self.moments and self.rng.random() < 0.2:
            source = self.rng.choice(sorted(self.moments))
            copy = self.moments[source]
            query, zeros = "SELECT * FROM {t}", False
        else:
            query, zeros = self.query()
        expected = self.answer(query, copy, zeros)
        said = "\n".join([*self.log, query.replace("{t}", source)])
        assert self.answer(query, source, zeros) == expected, said
        self.sql(f"SET {NATIVE_READS} = false")
        try:
            assert self.answer(query, source, zeros) == expected, f"{said}\nthrough Python"
        finally:
            self.sql(f"RESET {NATIVE_READS}")


ORDERS = ["ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"]


def play(sql, seed, path, steps, queries, file_format="parquet", *, far=False, merged=False):
    """Play a game. `merged`: files of the table overlap, and only Spark and tasks read them."""
    rng = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        if merged or rng.random() < 0.5:  # no scan is small, and none is too small to be divided
            patch.setattr(driver_rows, "MOST_ROWS", -1)
            patch.setattr(driver_rows, "_MOST_KEYS", 0)
            patch.setattr(native, "LEAST_BYTES", 1)
        game = Game(sql, rng, path, file_format, far, merged)
        game.insert()
        for _ in range(steps):
            game.step()
            for _ in range(queries):
                game.check()
    return game


@pytest.mark.more
@pytest.mark.drawn
def test_query_has_same_rows_in_every_reader(sql, seed, tmp_path):
    play(sql, f"{seed} one", tmp_path, steps=rounds(4, 1), queries=2)


@pytest.mark.more
@pytest.mark.drawn
def test_timestamps_beyond_python_are_equal_in_every_reader(sql, seed, tmp_path):
    play(sql, f"{seed} far", tmp_path, steps=rounds(4, 1), queries=2, far=True)


@pytest.mark.more
@pytest.mark.drawn
def test_query_of_merged_files_has_same_rows_in_every_reader(sql, seed, tmp_path, monkeypatch):
    merges = []
    merge = masks.merge_masks
    monkeypatch.setattr(masks, "merge_masks", lambda *arguments: merges.append(arguments) or merge(*arguments))
    play(sql, f"{seed} merged", tmp_path, steps=rounds(6, 3), queries=2, merged=True)
    assert merges


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_many_queries_have_same_rows_in_every_reader(sql, seed, tmp_path, file_format):
    for number in range(rounds(30)):
        far = file_format == "parquet" and number % 3 == 2
        merged = file_format == "parquet" and number % 3 == 1
        play(sql, f"{seed} {number}", tmp_path / str(number), 5, 5, file_format, far=far, merged=merged)
        sql("DROP TABLE t")
