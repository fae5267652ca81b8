"""The object stores that tests run on: how to start each, and the URL and options with which the engine reaches it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tests.support.places import azurite, fake_gcs, oss_double, versitygw

_OSS: dict[int, oss_double.OssServer] = {}
"""The stand-ins that run, by their ports."""


@contextmanager
def _oss_port() -> Iterator[int]:
    with oss_double.oss_double() as found:
        port = found.server_address[1]
        _OSS[port] = found
        yield port
        del _OSS[port]


def _fill_oss(port: int, directory: str, names: Iterable[str]) -> None:
    bucket, _, prefix = directory.partition("/")
    with _OSS[port].lock:
        for name in names:
            _OSS[port].put(bucket, f"{prefix}/{name}", b"", {})


@dataclass(frozen=True, slots=True)
class TestedStore:
    """A kind of store: its server and its client's settings."""

    name: str
    start: Callable[[], AbstractContextManager[int]]
    """Starts the server; yields its port."""
    root: str
    """The URL of a bucket that exists."""
    options: Callable[[int], Mapping[str, str]]
    """The storage options for a server, or for a proxy in front of it, at a port."""
    fill: Callable[[int, str, Iterable[str]], None]
    """Puts empty objects with these names into a directory of the server at a port: a bucket and a prefix."""
    page: int
    """The most names in an answer to a listing."""


STORES = (
    TestedStore("s3", versitygw.versitygw, "s3://bucket", versitygw.options, versitygw.fill, 1000),
    TestedStore("gcs", fake_gcs.fake_gcs, "gs://bucket", fake_gcs.options, fake_gcs.fill, 1000),
    TestedStore("azure", azurite.azurite, "az://box", azurite.options, azurite.fill, 5000),
    TestedStore("oss", _oss_port, "oss://bucket", oss_double.options, _fill_oss, 1000),
)
BY_NAME = {store.name: store for store in STORES}
