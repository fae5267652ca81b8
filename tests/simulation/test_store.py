"""The simulated stores answer as the real ones do."""

import random

import fsspec
import pytest

from paimon_core.fileio.local import LocalStorage
from paimon_core.fileio.remote import RemoteStorage
from tests.simulation.scheduler import Client, Listed, Scheduler
from tests.simulation.store import Disk, SimulatedStorage

NAMES = ["a", "b", "d/a", "d/b", "d/e/a"]
DIRECTORIES = ["d", "d/e", "f"]


def calls(rng: random.Random, count: int):
    """Draw calls as (method, path, further arguments)."""
    for _ in range(count):
        name, other, data = rng.choice(NAMES), rng.choice(DIRECTORIES), bytes([rng.randrange(256)])
        yield rng.choice(
            [
                ("write", name, data),
                ("create_exclusive", name, data),
                ("read", name),
                ("exists", rng.choice([name, other])),
                ("list", rng.choice(["", other])),
                ("delete", name),
                ("stream", name, data),
                ("delete_empty_directory", other),
                *([("delete_directory", other)] if rng.random() < 0.3 else []),
                *([("rename_directory", other, rng.choice(DIRECTORIES))] if rng.random() < 0.5 else []),
            ]
        )


def answer(storage, root: str, call):
    """Return what a call gives: its result, or the class of its error."""
    verb, path, *rest = call
    target = f"{root}/{path}".rstrip("/")
    try:
        if verb == "stream":
            if storage.exists(target):
                return None
            with storage.create(target) as sink:
                sink.write(rest[0])
            return None
        if verb == "rename_directory":
            return storage.rename_directory(target, f"{root}/{rest[0]}")
        if verb == "list":
            return sorted((s.name, s.size, s.is_directory) for s in storage.list(target) if not s.is_directory)
        return getattr(storage, verb)(target, *rest)
    except FileExistsError:
        return FileExistsError
    except FileNotFoundError:
        return FileNotFoundError
    except OSError:
        return OSError


def simulated(flavour: str, script):
    """Run a script with a simulated storage, as its only client."""
    scheduler = Scheduler(Listed(()))
    storage = SimulatedStorage(Disk(flavour), scheduler)

    def run(client: Client) -> None:
        scheduler.begin(0)
        script(storage)

    scheduler.run([run])


@pytest.mark.parametrize("number", range(20))
def test_local_store_answers_as_disk(number, tmp_path):
    real, root = LocalStorage(), f"{tmp_path}/r"
    real.write(f"{root}/keep", b"")
    script = list(calls(random.Random(number), 60))

    def compare(storage) -> None:
        storage.write(f"{root}/keep", b"")
        for call in script:
            if call[0] == "rename_directory" and f"{call[2]}/".startswith(f"{call[1]}/"):
                continue  # a directory into itself
            assert answer(storage, root, call) == answer(real, root, call), call

    simulated("local", compare)


@pytest.mark.parametrize("number", range(20))
def test_object_store_answers_as_one_of_fsspec(number):
    memory = fsspec.filesystem("memory", skip_instance_cache=True)
    memory.protocol = "s3"  # a store without directories
    real, root = RemoteStorage(memory, None), "memory://r"
    known = ("write", "read", "list", "delete", "stream")
    script = [call for call in calls(random.Random(number), 60) if call[0] in known]

    def compare(storage) -> None:
        for call in script:
            assert answer(storage, root, call) == answer(real, root, call), call

    try:
        simulated("object", compare)
    finally:
        memory.store.clear()
