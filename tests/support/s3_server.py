"""An S3 server on this machine, for tests: moto, one request at a time, so that conditional puts are atomic."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import fsspec
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from paimon_core.fileio.s3 import s3_arguments

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

CREDENTIALS = {"s3.access-key": "test-access", "s3.secret-key": "test-secret"}


@contextmanager
def s3_server(
    ignore_conditions: bool = False, keys: Collection[str] | None = None
) -> Iterator[tuple[str, dict[str, str]]]:
    """Start a server; yields a fresh bucket's URL (``s3://...``) and the storage options to reach it.

    ``keys``: the access keys that it accepts, which may change while it runs; `None`: every key.
    ``ignore_conditions`` makes it a store that overlooks ``If-None-Match``, as some do.
    """
    app = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, _one_at_a_time(app, ignore_conditions, keys), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        options = {"s3.endpoint": endpoint, "s3.path.style.access": "true", "s3.region": "us-east-1", **CREDENTIALS}
        bucket = f"bucket-{uuid4()}"
        client = fsspec.filesystem("s3", **s3_arguments(options))
        client.call_s3("create_bucket", Bucket=bucket)  # mkdir would name the region, which this one must not have
        yield f"s3://{bucket}", options
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _one_at_a_time(app: Application, ignore_conditions: bool, keys: Collection[str] | None) -> Application:
    """Moto looks first and writes later; two requests at once could both find nothing."""
    lock = threading.Lock()

    def locked(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if ignore_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        signed = environ.get("HTTP_AUTHORIZATION", "")
        if keys is not None and not any(f"Credential={key}/" in signed for key in keys):
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]
        with lock:
            return list(app(environ, start_response))

    return locked
