"""A proxy between a client and an HTTP server that fails one request in the ways networks and stores fail.

The modes: ``drop`` loses the answer of a request that the server ran. ``cut`` ends the connection in the middle of the
answer's body, and loses an answer without a body. ``reset`` ends the connection before the request
reaches the server. ``delay`` holds the answer back. ``503`` answers in the server's place. ``412`` replaces the answer
of a request that the server ran.
"""

import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

Mode = Literal["drop", "cut", "reset", "delay", "503", "412"]
MODES: tuple[Mode, ...] = ("drop", "cut", "reset", "delay", "503", "412")
DELAY_SECONDS = 0.3


class FaultyProxy:
    """Forward requests to a port of this machine; count them, and fail the requests that `arm` names.

    Attributes:
        port: the port that clients use.
        seen: the first line of every request, without the version.
        failed: the first lines of the requests that failed.
    """

    def __init__(self, target: int) -> None:
        self._target, self._lock = target, threading.Lock()
        self._mode: Mode = "drop"
        self._fails: Callable[[int, str], bool] = lambda number, line: False
        self.seen: list[str] = []
        self.failed: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, mode: Mode, fails: Callable[[int, str], bool]) -> None:
        """Count requests from 0 again, and fail those for which ``fails(number, line)`` is True."""
        with self._lock:
            self.seen, self.failed, self._mode, self._fails = [], [], mode, fails

    def disarm(self) -> None:
        """Fail no further request."""
        self._fails = lambda number, line: False

    def close(self) -> None:
        """Accept no further connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Serve one connection, request after request."""
        server = socket.create_connection(("127.0.0.1", self._target))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        requests, answers = Stream(client), Stream(server)
        try:
            while requests.has_bytes or _client_speaks_first(client, server):
                head = requests.head()
                if not head:
                    return
                if b"100-continue" in head.lower():  # the client waits for this answer before it sends the body
                    head = re.sub(rb"(?i)expect:[^\r]*\r\n", b"", head)
                    client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                line = head.split(b"\r\n", 1)[0].decode(errors="replace").rpartition(" ")[0]
                mode = self._failure_of(line)
                if mode == "reset":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                if mode == "503":
                    _forward_body(head, requests, None)
                    client.sendall(_answer("503 Service Unavailable", line))
                    continue
                server.sendall(head)
                _forward_body(head, requests, server)
                if not self._pass_answer(line, mode, answers, client):
                    return
        except OSError:
            return
        finally:
            client.close()
            server.close()

    def _failure_of(self, line: str) -> Mode | None:
        """Count a request; return the way in which it fails."""
        with self._lock:
            number = len(self.seen)
            self.seen.append(line)
            if not self._fails(number, line):
                return None
            self.failed.append(line)
            return self._mode

    @staticmethod
    def _pass_answer(line: str, mode: Mode | None, answers: "Stream", client: socket.socket) -> bool:
        """Pass the answer to a request on; return False if the connection ends."""
        head = answers.head()
        if not head:
            return False
        target = client if mode in (None, "delay") else None
        if mode == "delay":
            time.sleep(DELAY_SECONDS)
        if target is not None:
            target.sendall(head)
        body = _Body()
        if not line.startswith("HEAD ") and not head.startswith((b"HTTP/1.1 204", b"HTTP/1.1 304")):
            _forward_body(head, answers, body if mode == "cut" else target)
        if mode == "cut" and len(body.data) > 1:
            client.sendall(head + body.data[: len(body.data) // 2])
        if mode in ("drop", "cut"):
            return False
        if mode == "412":
            client.sendall(_answer("412 Precondition Failed", line))
        return b"connection: close" not in head.lower()


class Stream:
    """The bytes of a connection, read by heads and by lengths."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._rest = connection, b""

    @property
    def has_bytes(self) -> bool:
        """True if bytes have arrived that were not returned yet."""
        return bool(self._rest)

    def head(self) -> bytes:
        """Return the bytes through the next blank line; empty: the connection ended."""
        return self._through(b"\r\n\r\n")

    def line(self) -> bytes:
        """Return the bytes through the next end of a line."""
        return self._through(b"\r\n")

    def some(self, most: int) -> bytes:
        """Return up to ``most`` bytes. Raises OSError if the connection ended."""
        if not self._rest:
            self._rest = self._connection.recv(1 << 16)
            if not self._rest:
                raise OSError("the connection ended")
        found, self._rest = self._rest[:most], self._rest[most:]
        return found

    def _through(self, end: bytes) -> bytes:
        while end not in self._rest:
            data = self._connection.recv(1 << 16)
            if not data:
                return b""
            self._rest += data
        found, _, self._rest = self._rest.partition(end)
        return found + end


def _client_speaks_first(client: socket.socket, server: socket.socket) -> bool:
    """Wait for the client's next bytes, or its end; return False if the server ends an idle connection before that.

    Then the client's connection must end, too: clients notice it before they send another request.
    """
    both = select.poll()
    both.register(client, select.POLLIN)
    both.register(server, select.POLLIN)
    return client.fileno() in {number for number, _ in both.poll()}


class _Body:
    """A body that is collected."""

    def __init__(self) -> None:
        self.data = b""

    def sendall(self, data: bytes) -> None:
        """Append bytes."""
        self.data += data


def _forward_body(head: bytes, source: Stream, target: socket.socket | _Body | None) -> None:
    """Pass the body that a head announces on to ``target``; `None`: drop the body."""
    fields = dict(line.split(b":", 1) for line in head.lower().split(b"\r\n")[1:] if b":" in line)
    if fields.get(b"transfer-encoding", b"").strip() == b"chunked":
        while True:
            line = source.line()
            size = int(line.split(b";")[0] or b"0", 16) if line else 0
            data = line + (source.line() if size == 0 else exactly(source, size + 2))
            if target is not None:
                target.sendall(data)
            if size == 0:
                return
    left = int(fields.get(b"content-length", b"0"))
    while left:
        data = source.some(left)
        left -= len(data)
        if target is not None:
            target.sendall(data)


def exactly(source: Stream, size: int) -> bytes:
    """Return ``size`` bytes. Raises OSError if the connection ended."""
    found = b""
    while len(found) < size:
        found += source.some(size - len(found))
    return found


def _answer(status: str, line: str) -> bytes:
    code = "SlowDown" if status.startswith("503") else "PreconditionFailed"
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>injected</Message></Error>'.encode()
    body = b"" if line.startswith("HEAD ") else body
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@contextmanager
def faulty_proxy(target: int) -> Iterator[FaultyProxy]:
    """Start a proxy in front of a port."""
    found = FaultyProxy(target)
    try:
        yield found
    finally:
        found.close()
