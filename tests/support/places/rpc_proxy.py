"""A proxy in front of a name node of HDFS, which fails single calls of Hadoop's protocol.

Blocks of files go to the data nodes past the proxy. Only the modes ``drop``, ``reset`` and ``delay`` exist.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.support.places.proxy import DELAY_SECONDS, FaultyProxy, Stream, exactly

RPC_MODES = ("drop", "reset", "delay")
_PREAMBLE = 7  # "hrpc", version, class of service, protocol of authentication


class RpcProxy(FaultyProxy):
    """Forward calls to a port of this machine; the lines of `seen` and `failed` are the names of methods."""

    def _serve(self, client: socket.socket) -> None:
        """Serve one connection, call after call; answers come in any order."""
        server = socket.create_connection(("127.0.0.1", self._target))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lost: set[int] = set()
        threading.Thread(target=_pass_answers, args=(server, client, lost), daemon=True).start()
        calls = Stream(client)
        with suppress(OSError):
            server.sendall(exactly(calls, _PREAMBLE))
            while True:
                frame = _frame(calls)
                number, method = _call(frame)
                mode = self._failure_of(method) if number >= 0 else None
                if mode == "reset":
                    break
                if mode == "drop":
                    lost.add(number)
                if mode == "delay":
                    time.sleep(DELAY_SECONDS)
                server.sendall(frame)
        _end(client, server)


def _pass_answers(server: socket.socket, client: socket.socket, lost: set[int]) -> None:
    """Pass answers on until the answer to a lost call arrives; then end both connections."""
    answers = Stream(server)
    with suppress(OSError):
        while True:
            frame = _frame(answers)
            header, _ = _message(frame, 4)
            if _fields(header).get(1) in lost:
                break
            client.sendall(frame)
    _end(client, server)


def _end(*connections: socket.socket) -> None:
    for connection in connections:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _frame(source: Stream) -> bytes:
    """Return the next frame, with its length of 4 bytes."""
    size = exactly(source, 4)
    return size + exactly(source, int.from_bytes(size, "big"))


def _call(frame: bytes) -> tuple[int, str]:
    """Return the number of a call and the name of its method; a negative number: a part of the handshake, or a ping."""
    header, end = _message(frame, 4)
    encoded = _fields(header)[3]
    assert isinstance(encoded, int)
    number = (encoded >> 1) ^ -(encoded & 1)
    if number < 0:
        return number, ""
    method = _fields(_message(frame, end)[0])[1]
    assert isinstance(method, bytes)
    return number, method.decode()


def _message(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the message of protocol buffers that begins at a position with its length, and the position behind it."""
    size, at = _varint(data, at)
    return data[at : at + size], at + size


def _fields(message: bytes) -> dict[int, int | bytes]:
    """Return the fields of a message, numbers and bytes, by their number."""
    found: dict[int, int | bytes] = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == 2:
            found[tag >> 3], at = _message(message, at)
        else:
            found[tag >> 3], at = _varint(message, at)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


@contextmanager
def rpc_proxy(target: int) -> Iterator[RpcProxy]:
    """Start a proxy in front of a name node's port."""
    found = RpcProxy(target)
    try:
        yield found
    finally:
        found.close()
