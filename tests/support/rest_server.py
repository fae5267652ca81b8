"""A server with scripted answers, for the client of the REST catalog: errors, pages, retries and broken connections."""

import json
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

BREAK = object()
"""An answer that breaks the connection instead."""


@dataclass
class Asked:
    """A request that the server received."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class ScriptedServer:
    """A server that answers each request with ``answer``, a function of the request.

    The function returns a status, a JSON object or `None`, and optionally headers; or `BREAK`.
    """

    uri: str = ""
    answer: Callable[[Asked], Any] = lambda asked: (404, {})
    asked: list[Asked] = field(default_factory=list)

    def script(self, *answers: Any) -> None:
        """Answer the next requests with these, in order."""
        left = list(answers)
        self.answer = lambda asked: left.pop(0)


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Run a `ScriptedServer` in threads of this process."""
    scripted = ScriptedServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(self.command, self.path, dict(self.headers), json.loads(text) if text else None)
            scripted.asked.append(asked)
            answer = scripted.answer(asked)
            if answer is BREAK:
                linger = struct.pack("ii", 1, 0)  # a reset instead of an orderly end
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.close_connection = True
                return
            status, body, *headers = answer
            content = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            for name, value in (headers[0] if headers else {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _serve

        def log_message(self, format: str, *arguments: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    scripted.uri = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield scripted
    finally:
        server.shutdown()
        server.server_close()
