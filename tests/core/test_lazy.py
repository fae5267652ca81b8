"""Lazy names: imported on first use, by any thread, with the errors of an import."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from paimon_core.lazy import collection_paused, deferred, lazy_names

SLOW = """
import time
time.sleep(0.1)
def answer(number, plus=0):
    return number + plus
"""


@pytest.fixture
def slow_module(tmp_path, monkeypatch):
    """The name of a module that takes a while to import and has a function ``answer``."""
    (tmp_path / "slow_paimon_module.py").write_text(SLOW)
    (tmp_path / "broken_paimon_module.py").write_text("import no_such_paimon_dependency")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "slow_paimon_module"
    sys.modules.pop("slow_paimon_module", None)


def test_deferred_function_is_imported_by_first_call(slow_module):
    answer = deferred(slow_module, "answer")
    assert slow_module not in sys.modules
    assert answer(1, plus=2) == 3
    assert slow_module in sys.modules


def test_threads_wait_for_import_of_another_thread(slow_module):
    answer, start = deferred(slow_module, "answer"), Barrier(4)

    def call(number):
        start.wait()
        return answer(number)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(call, range(4))) == [0, 1, 2, 3]


def test_name_of_broken_module_raises_error_of_import(slow_module):
    get, _ = lazy_names(__name__, {"broken_paimon_module": "name"}, ["name"])
    with pytest.raises(ModuleNotFoundError, match="no_such_paimon_dependency"):
        get("name")
    assert gc.isenabled()


def test_alias_is_name_of_facade(slow_module, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "reply", None, raising=False)
    get, names = lazy_names(__name__, {slow_module: "answer=reply"}, ["reply"])
    assert get("reply")(4) == 4
    assert list(names()) == ["reply"]
    with pytest.raises(AttributeError, match="answer"):
        get("answer")


def test_collection_stays_off_if_it_was_off():
    gc.disable()
    try:
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
    with collection_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
