"""The fault injector itself: each mode leaves exactly what it promises."""

import pytest

from tests.support.faulty_io import MODES, Crash, FaultyIO, MemoryIO

P = "memory://t/f"


def verbs():
    return {
        "read": lambda io: io.read(P),
        "open": lambda io: io.open(P),
        "write": lambda io: io.write(P, b"newest"),
        "create": lambda io: put(io),
        "create_exclusive": lambda io: io.create_exclusive("memory://t/g", b"newest"),
        "exists": lambda io: io.exists(P),
        "list": lambda io: io.list("memory://t"),
        "delete": lambda io: io.delete(P),
        "delete_directory": lambda io: io.delete_directory("memory://t"),
        "rename_directory": lambda io: io.rename_directory("memory://t", "memory://u"),
    }


def put(io):
    with io.create("memory://t/g") as sink:
        sink.write(b"newest")


@pytest.mark.parametrize("verb", verbs())
@pytest.mark.parametrize("mode", MODES)
def test_every_verb_fails_in_every_mode(verb, mode):
    before = MemoryIO({P: b"old", "memory://t/h": b"old"})
    after = before.copy()
    verbs()[verb](after)
    inner = before.copy()
    io = FaultyIO(inner, 1 if verb == "create" else 0, mode)  # a stream fails where its bytes go out
    with pytest.raises(Crash if mode in ("torn", "crash") else OSError):
        verbs()[verb](io)
    if mode == "lost-answer":
        assert inner.files == after.files
    elif mode in ("before", "crash"):
        assert inner.files == before.files
    elif verb == "create":
        assert inner.files["memory://t/g"] == b"new"
    elif verb in ("write", "create_exclusive"):
        assert {name: text for name, text in inner.files.items() if not name.endswith(".tmp")} == before.files
        assert b"new" in inner.files.values()
    elif verb == "delete_directory":
        assert len(inner.files) == 1
    else:
        assert inner.files == before.files
    frozen = mode in ("torn", "crash")
    assert io.frozen == frozen
    if frozen:
        with pytest.raises(Crash):
            io.exists(P)


def test_dry_run_counts_calls():
    io = FaultyIO(MemoryIO())
    put(io)
    io.list("memory://t")
    assert io.log == [("create", "memory://t/g"), ("close", "memory://t/g"), ("list", "memory://t")]
    assert io.calls == 3
