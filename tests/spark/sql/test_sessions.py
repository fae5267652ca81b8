"""A statement runs in the session that issued it: its views, its current database, its settings; also in a stream."""

import threading

import pytest

from tests.support.session_settings import drop_temporary_views


def rows(session, table):
    return sorted(map(tuple, session.sql(f"SELECT id, who FROM {table}").collect()))


@pytest.mark.more
@pytest.mark.versions
def test_views_of_one_name_in_two_sessions(sql):
    """Both sessions issue every kind of statement at once; each has a view v and a database of its own."""
    errors = []

    def work(number, session):
        try:
            for table in ("k", "a"):
                session.sql(f"INSERT INTO {table} SELECT id, 'new' FROM v")
                session.sql(f"UPDATE {table} SET who = 'even' WHERE id IN (SELECT id FROM v WHERE id % 2 = 0)")
                merge = f"MERGE INTO {table} t USING v ON t.id = v.id AND v.id % 2 = 1 WHEN MATCHED"
                session.sql(f"{merge} THEN UPDATE SET who = 'odd'")
                session.sql(f"DELETE FROM {table} WHERE id = (SELECT max(id) FROM v)")
                session.sql(f"INSERT OVERWRITE {table} SELECT t.* FROM {table} t JOIN v ON t.id = v.id")
                expected = [(i, "odd" if i % 2 else "even") for i in range(number * 100, number * 100 + 9)]
                assert rows(session, table) == expected
        except BaseException as error:
            errors.append(error)

    catalog = sql("SELECT current_catalog()")[0][0]
    threads = []
    for number in range(2):
        session = sql.spark.newSession()
        session.sql(f"USE {catalog}.{sql.database}")
        session.sql(f"CREATE DATABASE {sql.database}_{number}")
        session.sql(f"USE {sql.database}_{number}")
        session.conf.set("spark.paimon.*.*.a.write-only", str(number == 1).lower())
        session.sql("CREATE TABLE k (id BIGINT, who STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
        session.sql("CREATE TABLE a (id BIGINT, who STRING)")
        session.range(number * 100, number * 100 + 10).createOrReplaceTempView("v")
        threads.append(threading.Thread(target=work, args=(number, session), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert errors == []
    assert not any(thread.is_alive() for thread in threads)
    for number in range(2):
        sql(f"DROP DATABASE {sql.database}_{number} CASCADE")


@pytest.mark.more
@pytest.mark.parametrize("options", ["'bucket' = '-1'", "'primary-key' = 'id', 'bucket' = '1'"])
def test_merge_of_batch_of_stream(sql, tmp_path, options):
    """foreachBatch gives a cloned session, whose view the statement sees; a new start goes on behind the checkpoint."""
    sql("CREATE TABLE source (id BIGINT, who STRING)")
    sql(f"CREATE TABLE t (id BIGINT, who STRING) TBLPROPERTIES ({options})")
    sql.spark.range(5).createOrReplaceTempView("batch")  # another view of this name, which is not the view of the batch
    name = f"{sql('SELECT current_catalog()')[0][0]}.{sql.database}.t"

    def merge(frame, number):
        frame.createOrReplaceTempView("batch")
        frame.sparkSession.sql(f"""MERGE INTO {name} t USING (SELECT id, max(who) AS who FROM batch GROUP BY id) s
            ON t.id = s.id WHEN MATCHED AND s.who = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET who = s.who
            WHEN NOT MATCHED THEN INSERT *""")

    def run():
        stream = sql.spark.readStream.table("source").writeStream.foreachBatch(merge).trigger(availableNow=True)
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        assert stream.awaitTermination(120)
        assert stream.exception() is None

    sql("INSERT INTO source VALUES (1, 'a'), (2, 'b')")
    run()
    assert rows(sql.spark, "t") == [(1, "a"), (2, "b")]
    sql("INSERT INTO source VALUES (2, 'gone'), (3, 'c')")
    run()
    run()
    assert rows(sql.spark, "t") == [(1, "a"), (3, "c")]
    assert sql("SELECT count(*) FROM batch") == [(5,)]


@pytest.mark.more
def test_stream_of_a_table_by_name_takes_options_of_streams(sql, tmp_path):
    sql("CREATE TABLE source (id BIGINT)")
    seen = []

    def run():
        frame = sql.spark.readStream.option("consumer-id", "seen").table("source")
        stream = frame.writeStream.foreachBatch(lambda frame, number: seen.extend(row.id for row in frame.collect()))
        stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()

    for number in (1, 2):
        sql(f"INSERT INTO source VALUES ({number})")
        run()
        assert seen == list(range(1, number + 1))
    assert sql("SELECT consumer_id, next_snapshot_id FROM `source$consumers`") == [("seen", 3)]


@pytest.mark.more
def test_dropped_views_hide_no_table_of_a_later_test(sql):
    """`tests/conftest.py` drops them after each test; a view that stays would receive the rows of INSERT."""
    sql.spark.range(3).createOrReplaceTempView("copy")
    drop_temporary_views()
    sql("CREATE TABLE copy (id INT)")
    sql("INSERT INTO copy VALUES (7)")
    assert sql("SELECT * FROM copy") == [(7,)]
