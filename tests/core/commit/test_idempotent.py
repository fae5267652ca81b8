"""Idempotent commits: repeated with other files, a number is committed once, even by concurrent attempts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.commit.intents import Intent, Intents
from paimon_core.errors import CorruptedError, InvalidInputError, OutOfRangeError
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.schedule import interleave
from tests.support.tables import ORDERS, orders

ROOT = "memory://w/t"
USER = "query-1"


def table_at(io):
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


@pytest.fixture
def io():
    memory = MemoryIO()
    create_table(memory, ROOT, Schema(ORDERS, options={"file.format": "avro", "commit.min-retry-wait": "0 ms"}))
    return memory


def batch(io, number, rows=None, **how):
    """An attempt at a batch, with files of its own; its rows are its number unless given."""
    table = table_at(io)
    with table.writer() as writer:
        for n in [number] if rows is None else rows:
            writer.write(orders((n, "x", n)))
        messages = writer.prepare_commit()
    return IdempotentCommits(table.store, USER, **how).commit(messages, number, started_from=writer.started_from)


def others(io, times=1):
    for _ in range(times):
        table_at(io).write(orders((-1, "other", 0)))


def expire(io, until):
    """Remove snapshots up to this one, as an expiry by another process does. Data files stay."""
    for number in range(1, until + 1):
        io.files.pop(f"{ROOT}/snapshot/snapshot-{number}", None)


def numbers(io):
    return sorted(n for n in table_at(io).to_arrow().column("id").to_pylist() if n >= 0)


def data_files(io):
    return {path for path in io.files if "/bucket-" in path}


def test_repeated_batch_returns_its_snapshot_and_deletes_its_files(io):
    made = [batch(io, n) for n in range(3)]
    others(io)
    files = data_files(io)
    assert batch(io, 2) is None
    died_before_it_noted(io, 2)
    assert batch(io, 2).id == made[2].id
    assert data_files(io) == files
    assert numbers(io) == [0, 1, 2]


def test_batch_with_intent_but_no_snapshot_is_committed(io):
    batch(io, 0)
    store = table_at(io).store
    Intents(store.io, store.branch_root, USER).begin(1, Intent(1))
    others(io, 2)
    assert batch(io, 1, consecutive=True).id == 4
    assert numbers(io) == [0, 1]


def test_only_last_intent_remains(io):
    for n in range(5):
        batch(io, n)
    assert sorted(path.rsplit("/", 1)[1] for path in io.files if "/intent/" in path) == ["batch-4", "landed-4"]


def test_empty_batches_leave_no_snapshot_but_count(io):
    batch(io, 0, rows=[], consecutive=True)
    assert table_at(io).snapshot() is None
    assert batch(io, 1, consecutive=True).id == 1
    assert IdempotentCommits(table_at(io).store, USER).last() == 1


def test_batches_known_as_committed_may_expire(io):
    batch(io, 0)
    batch(io, 1)
    others(io, 3)
    expire(io, 4)
    files = data_files(io)
    assert IdempotentCommits(table_at(io).store, USER).is_committed(1)
    assert batch(io, 1, consecutive=True) is None
    assert data_files(io) == files
    assert batch(io, 2, consecutive=True).id == 6
    assert numbers(io) == [0, 1, 2]


def died_before_it_noted(io, number):
    del io.files[f"{ROOT}/intent/user-{USER}/landed-{number}"]


def test_batch_is_undecided_if_its_possible_snapshots_expired(io):
    batch(io, 0)
    batch(io, 1)
    died_before_it_noted(io, 1)
    others(io, 3)
    expire(io, 2)
    before, files = numbers(io), data_files(io)
    with pytest.raises(OutOfRangeError, match="on-doubt = skip if they are, or = commit if they are not"):
        batch(io, 1)
    assert data_files(io) == files
    assert batch(io, 1, on_unknown="skip") is None
    assert numbers(io) == before
    assert data_files(io) == files
    assert batch(io, 1, on_unknown="commit").id == 6
    assert numbers(io) == sorted([*before, 1])


def test_expiry_before_batch_changes_no_decision(io):
    batch(io, 0)
    others(io, 3)
    batch(io, 1)
    died_before_it_noted(io, 1)
    expire(io, 4)
    assert batch(io, 1).id == 5
    others(io)
    assert batch(io, 2).id == 7
    assert numbers(io) == [0, 1, 2]


@pytest.mark.parametrize(
    ("done", "number", "why"), [(0, 3, "has no batch of it"), (5, 3, "the checkpoint is older"), (2, 7, "up to 1")]
)
def test_batch_out_of_order_is_refused(io, done, number, why):
    for n in range(done):
        batch(io, n)
    files = data_files(io)
    with pytest.raises(InvalidInputError, match=why):
        batch(io, number, consecutive=True)
    assert data_files(io) == files
    assert batch(io, number, consecutive=True, on_unknown="skip") is None
    assert batch(io, number, rows=[99], consecutive=True, on_unknown="commit") is not None
    assert 99 in numbers(io)


def test_versions_may_have_gaps_and_old_ones_are_skipped(io):
    assert batch(io, 10).id == 1
    assert batch(io, 20).id == 2
    assert batch(io, 15) is None
    assert numbers(io) == [10, 20]
    assert IdempotentCommits(table_at(io).store, USER).is_committed(15)


def test_without_intents_snapshots_decide(io):
    for n in range(3):
        batch(io, n)
    others(io)
    for path in [path for path in io.files if "/intent/" in path]:
        del io.files[path]
    assert batch(io, 2, consecutive=True) is None
    assert batch(io, 3, consecutive=True).id == 5
    assert numbers(io) == [0, 1, 2, 3]


def test_is_committed_is_certain_and_writes_nothing(io):
    store = table_at(io).store
    ask = IdempotentCommits(store, USER).is_committed
    batch(io, 0)
    Intents(store.io, store.branch_root, USER).begin(1, Intent(1))
    before = dict(io.files)
    assert (ask(0), ask(1), ask(2)) == (True, False, False)
    others(io, 2)
    expire(io, 2)
    assert not ask(1)
    assert before.keys() - {f"{ROOT}/snapshot/snapshot-1"} <= io.files.keys()


def test_complete_mode_replaces_table_once(io):
    for n in (0, 1, 1, 1):
        table = table_at(io)
        with table.writer(overwrite=True) as writer:
            writer.write(orders((n, "x", n)))
            messages = writer.prepare_commit()
        result = IdempotentCommits(table.store, USER, consecutive=True).overwrite(messages, n)
        if result is not None and n == 1:
            died_before_it_noted(io, 1)
    assert numbers(io) == [1]
    assert table_at(io).snapshot().id == 2
    assert IdempotentCommits(table.store, USER, consecutive=True).overwrite([], 2).id == 3
    assert numbers(io) == []


def test_corrupted_intent_is_named_in_error(io):
    batch(io, 0)
    died_before_it_noted(io, 0)
    (path,) = (path for path in io.files if "/intent/" in path)
    for content in (b"", b"{}", b"[1]", b'{"version": 2, "base": 0}', b'{"version": 1, "base": "0"}'):
        io.files[path] = content
        with pytest.raises(CorruptedError, match="batch-0"):
            batch(io, 0)


@pytest.mark.parametrize("number", [-1, 2**63 - 1])
def test_number_out_of_range_is_refused(io, number):
    with pytest.raises(InvalidInputError, match="from 0 to"):
        batch(io, number, rows=[1])
    assert not data_files(io)


@pytest.mark.parametrize("user", ["a/b", "..", "ü=%", "query"])
def test_each_user_name_has_separate_intents(io, user):
    store = table_at(io).store
    intents = Intents(store.io, store.branch_root, user)
    assert intents.begin(3, Intent(7, "m")) == Intent(7, "m")
    assert intents.begin(3, Intent(9)) == Intent(7, "m")
    assert intents.numbers() == [3]
    assert Intents(store.io, store.branch_root, user + "x").numbers() == []
    assert all(path.startswith(f"{ROOT}/") for path in io.files)


turns = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=24)


@draws(40)
@given(turns, st.booleans())
def test_concurrent_attempts_commit_a_batch_once(turns, empty):
    """A run that seemed dead continues while its replacement already commits the next batch."""
    memory = MemoryIO()
    create_table(memory, ROOT, Schema(ORDERS, options={"file.format": "avro", "commit.min-retry-wait": "0 ms"}))
    if not empty:
        batch(memory, 0)

    def dead(io):
        return batch(io, 1 - empty, consecutive=True)

    def alive(io):
        for n in (1, 2, 3):
            batch(io, n - empty, consecutive=True)

    ended = interleave(memory, [dead, alive, others], turns)
    assert ended[1] is None, ended
    assert not isinstance(ended[0], Exception) or isinstance(ended[0], InvalidInputError), ended
    assert numbers(memory) == list(range(empty and 0, 4 - empty))
    store = table_at(memory).store
    named = {e.file.file_name for s in table_at(memory).snapshots() for e in live_entries(store, s).live}
    assert {path.rsplit("/", 1)[1] for path in data_files(memory)} == named


def test_number_of_another_source_is_refused(io):
    """A number of another source is refused whether its commit succeeded or died: its rows are not the same."""
    batch(io, 0, source="query a")
    with pytest.raises(InvalidInputError, match=r"query b.*up to 0 from query a.*another app_id"):
        batch(io, 0, rows=[7], source="query b")
    store = table_at(io).store
    Intents(store.io, store.branch_root, USER).begin(1, Intent(1, "query a"))
    with pytest.raises(InvalidInputError, match="not a repetition"):
        batch(io, 1, rows=[7], source="query b")
    assert batch(io, 1, source="query a").id == 2
    assert batch(io, 2, source="query b").id == 3
    assert numbers(io) == [0, 1, 2]


def test_other_source_that_begins_at_same_time_is_refused(io, monkeypatch):
    """Both read that the number is free. The one whose intent comes second must not count as a repetition."""
    begin = Intents.begin

    def second(intents, number, intent):
        monkeypatch.setattr(Intents, "begin", begin)
        batch(io, number, source="query a")
        return begin(intents, number, intent)

    monkeypatch.setattr(Intents, "begin", second)
    with pytest.raises(InvalidInputError, match=r"query b.*from query a.*another app_id"):
        batch(io, 0, rows=[7], source="query b")
    assert numbers(io) == [0]
    assert len(data_files(io)) == 1, "the files of the refused attempt are deleted"


@pytest.mark.parametrize("commits_after", [0, 1, 4])
def test_batch_repeated_after_rollback_is_committed_once(io, monkeypatch, commits_after):
    """The ids up to the base of its intent are used again, so its snapshot may be below that base."""
    others(io, 4)
    table = table_at(io)
    Intents(io, table.store.branch_root, USER).begin(0, Intent(4, None, table.snapshot().fingerprint))
    table.rollback_to(1)
    monkeypatch.setattr(Intents, "finish", lambda *_: None)  # the process died before it could note the success
    batch(io, 0)
    others(io, commits_after)
    batch(io, 0)
    assert numbers(io) == [0]
