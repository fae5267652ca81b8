"""Options of a write that creates its table become properties of it; only an existing table contradicts them."""

import logging

import pytest

pytestmark = pytest.mark.spark


def frame(sql, *ids):
    return sql.spark.createDataFrame([(i, "d1", f"v{i}") for i in ids], "id int, dt string, v string")


def properties(sql, table="t"):
    return {row[0]: row[1] for row in sql(f"SHOW TBLPROPERTIES {table}")}


def save_as_table(rows, mode, **options):
    rows.write.format("paimon").mode(mode).options(**options).saveAsTable("t")


KEYED = {"primary-key": "ID", "bucket": "2", "fields.V.default-value": "x"}
KEYED = {"primary-key": "ID", "bucket": "2", "merge-engine": "aggregation", "fields.V.aggregate-function": "max"}
CREATIONS = {
    "saveAsTable": lambda rows: save_as_table(rows, "errorifexists", **KEYED),
    "saveAsTable, append": lambda rows: save_as_table(rows, "append", **KEYED),
    "create": lambda rows: with_options(rows.writeTo("t")).create(),
    "createOrReplace": lambda rows: with_options(rows.writeTo("t")).createOrReplace(),
}


def with_options(writer, **options):
    for key, value in {**KEYED, **options}.items():
        writer = writer.option(key, value)
    return writer


def check_keyed(sql):
    stored = properties(sql)
    assert stored["primary-key"] == "id"
    assert (stored["bucket"], stored["merge-engine"], stored["fields.v.aggregate-function"]) == (
        "2",
        "aggregation",
        "max",
    )
    sql("INSERT INTO t VALUES (1, 'd1', 'new')")
    assert sql("SELECT v FROM t WHERE id = 1") == [("v1",)]
    assert sql("SELECT count(*) FROM t") == [(2,)]


@pytest.mark.parametrize("name", ["saveAsTable", *(pytest.param(n, marks=pytest.mark.more) for n in [*CREATIONS][1:])])
def test_options_of_a_write_that_creates_a_table(sql, name):
    CREATIONS[name](frame(sql, 1, 2))
    check_keyed(sql)


def test_options_of_write_that_replaces_table(sql):
    frame(sql, 7, 7).writeTo("t").create()
    assert "primary-key" not in properties(sql)
    with_options(frame(sql, 1, 2).writeTo("t")).replace()
    check_keyed(sql)
    save_as_table(frame(sql, 5, 5), "overwrite", bucket="-1")
    assert "primary-key" not in properties(sql)
    assert sql("SELECT count(*) FROM t") == [(2,)]


def test_options_are_combined_with_partitions_and_properties(sql):
    writer = with_options(frame(sql, 1, 2).writeTo("t").tableProperty("bucket", "2"), **{"primary-key": "dt,id"})
    writer.partitionedBy("dt").create()
    assert properties(sql)["primary-key"] == "dt,id"
    assert sql("SHOW PARTITIONS t") == [("dt=d1",)]
    save_as_table(frame(sql, 1, 2), "overwrite", partition="DT")
    assert sql("SHOW PARTITIONS t") == [("dt=d1",)]


@pytest.mark.parametrize(
    ("option", "value"), [("bucket", "3"), ("primary-key", "id"), ("partition", "v")], ids=lambda text: text
)
def test_options_that_contradict_declaration_are_refused(sql, option, value):
    writer = frame(sql, 1).writeTo("t").tableProperty("bucket", "2").tableProperty("primary-key", "dt,id")
    with pytest.raises(
        Exception, match=rf"option '{option}' of the write that creates .*t is '{value}'.*declared with"
    ):
        writer.partitionedBy("dt").option(option, value).create()
    assert sql("SHOW TABLES") == []


def test_options_that_contradict_existing_table_are_refused(sql):
    frame(sql, 1).writeTo("t").create()
    for write in (
        lambda: with_options(frame(sql, 2).writeTo("t")).append(),
        lambda: CREATIONS["saveAsTable, append"](frame(sql, 2)),
    ):
        with pytest.raises(Exception, match=r"option 'primary-key' = 'ID', but the table .* has ''"):
            write()
    assert sql("SELECT count(*) FROM t") == [(1,)]


def test_wrong_options_create_no_table(sql):
    for option, message in (("primary-key", "nope"), ("bukket", "did you mean 'bucket'")):
        with pytest.raises(Exception, match=message):
            frame(sql, 1).writeTo("t").option(option, "nope").create()
        assert sql("SHOW TABLES") == []


def test_clauses_without_effect_are_refused_or_warned_about(sql, caplog):
    location = sql.spark.sql(f"DESCRIBE DATABASE {sql.database}").where("info_name = 'Location'").collect()[0][1]
    with pytest.raises(Exception, match="EXTERNAL is not possible"):
        sql(f"CREATE EXTERNAL TABLE t (id INT) LOCATION '{location}/t'")
    with pytest.raises(Exception, match=r"'option\.bucket' has no effect: set the property 'bucket'"):
        sql("CREATE TABLE t (id INT) TBLPROPERTIES ('option.bucket' = '2')")
    sql("CREATE TABLE t (id INT) OPTIONS ('target-file-size' = '1 mb')")
    with caplog.at_level(logging.WARNING):
        sql("ALTER TABLE t UNSET TBLPROPERTIES ('target-file-size')")
        assert "changes nothing" not in caplog.text
        sql("ALTER TABLE t UNSET TBLPROPERTIES ('target-file-size')")
    assert "the table has no property 'target-file-size'" in caplog.text


@pytest.mark.more
def test_stream_that_creates_its_table(sql, tmp_path):
    frame(sql, 1, 2).write.parquet(f"{tmp_path}/rows")
    stream = sql.spark.readStream.schema("id int, dt string, v string").parquet(f"{tmp_path}/rows").writeStream
    stream = stream.format("paimon").options(**KEYED).option("checkpointLocation", f"{tmp_path}/checkpoint")
    stream.trigger(availableNow=True).toTable("t").awaitTermination()
    check_keyed(sql)
