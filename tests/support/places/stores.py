"""The object stores that tests run on: how to start each, and the URL and options with which the engine reaches it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tests.support.places import azurite, fake_gcs, oss_double, versitygw


@contextmanager
def _oss_port() -> Iterator[int]:
    with oss_double.oss_double() as found:
        yield found.server_address[1]


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


STORES = (
    TestedStore("s3", versitygw.versitygw, "s3://bucket", versitygw.options),
    TestedStore("gcs", fake_gcs.fake_gcs, "gs://bucket", fake_gcs.options),
    TestedStore("azure", azurite.azurite, "az://box", azurite.options),
    TestedStore("oss", _oss_port, "oss://bucket", oss_double.options),
)
BY_NAME = {store.name: store for store in STORES}
