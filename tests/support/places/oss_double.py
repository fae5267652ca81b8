"""A stand-in for Alibaba OSS in this process, as no emulator exists: one request at a time, signatures are not checked.

It answers as OSS documents: PUT with ``x-oss-forbid-overwrite``, copies, uploads in parts, ranges, paged listings,
single and multiple deletion.
"""

import hashlib
import re
import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from uuid import uuid4
from xml.sax.saxutils import escape, unescape

_XML = '<?xml version="1.0" encoding="UTF-8"?>'


class OssServer(ThreadingHTTPServer):
    """The server; ``objects``: content by bucket and key; the bucket ``versioned`` ignores conditions, as OSS does."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.keys: dict[str, list[str]] = {}  # sorted, by bucket: a listing does not look at other directories
        self.headers: dict[tuple[str, str], dict[str, str]] = {}
        self.times: dict[tuple[str, str], float] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def put(self, bucket: str, key: str, body: bytes, headers: dict[str, str]) -> None:
        """Create or replace an object; the caller holds the lock."""
        if (bucket, key) not in self.objects:
            insort(self.keys.setdefault(bucket, []), key)
        self.objects[bucket, key], self.headers[bucket, key] = body, headers
        self.times[bucket, key] = time.time()

    def remove(self, bucket: str, key: str) -> None:
        """Delete an object if it exists; the caller holds the lock."""
        if self.objects.pop((bucket, key), None) is not None:
            keys = self.keys[bucket]
            del keys[bisect_left(keys, key)]

    def page(self, bucket: str, prefix: str, delimiter: str, after: str, most: int) -> tuple[dict[str, bool], bool]:
        """Return up to ``most`` names that begin with a prefix, and True if there are more; the caller holds the lock.

        A name is mapped to True if it stands for all keys that begin with it. ``after``: the last name of the page
        before; empty: none.
        """
        keys, found = self.keys.get(bucket, []), dict[str, bool]()
        at = bisect_right(keys, after) if after > prefix else bisect_left(keys, prefix)
        while at < len(keys) and keys[at].startswith(prefix):
            end = keys[at].find(delimiter, len(prefix)) if delimiter else -1
            name = keys[at] if end < 0 else keys[at][: end + len(delimiter)]
            if name > after:
                if len(found) == most:
                    return found, True
                found[name] = end >= 0
            at = at + 1 if end < 0 else bisect_left(keys, f"{name[:-1]}{chr(ord(name[-1]) + 1)}")
        return found, False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: OssServer

    def log_message(self, *arguments: Any) -> None:
        """Stay silent."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def do_PUT(self) -> None:
        bucket, key, query = self._target()
        body = self._body()
        source = self.headers.get("x-oss-copy-source")
        if source is not None:
            old = tuple(unquote(source).lstrip("/").split("/", 1))
            with self.server.lock:
                found = self.server.objects.get(old)  # type: ignore[call-overload]
            if found is None:
                return self._refuse(404, "NoSuchKey")
            span = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("x-oss-copy-source-range", ""))
            body = found if span is None else found[int(span[1]) : int(span[2]) + 1]
        etag = f'"{hashlib.md5(body).hexdigest().upper()}"'
        with self.server.lock:
            if "partNumber" in query:
                parts = self.server.uploads.get(query["uploadId"])
                if parts is None:
                    return self._refuse(404, "NoSuchUpload")
                parts[int(query["partNumber"])] = body
            elif self._forbids() and bucket != "versioned" and (bucket, key) in self.server.objects:
                return self._refuse(409, "FileAlreadyExists")
            elif key:
                self._store(bucket, key, body)
        date = _date(time.time())
        name = "CopyPartResult" if "partNumber" in query else "CopyObjectResult"
        copied = f"{_XML}<{name}><ETag>{escape(etag)}</ETag><LastModified>{date}</LastModified></{name}>"
        return self._answer(200, copied.encode() if source else b"", {"ETag": etag})

    def do_POST(self) -> None:
        bucket, key, query = self._target()
        body = self._body().decode()
        if "delete" in query:
            keys = [unescape(name) for name in re.findall("<Key>(.*?)</Key>", body, re.DOTALL)]
            with self.server.lock:
                for name in keys:
                    self.server.remove(bucket, name)
            return self._answer(200, f"{_XML}<DeleteResult></DeleteResult>".encode())
        with self.server.lock:
            if "uploads" in query:
                upload = uuid4().hex
                self.server.uploads[upload] = {}
                return self._answer(200, f"{_XML}<R><Bucket/><Key/><UploadId>{upload}</UploadId></R>".encode())
            parts = self.server.uploads.pop(query.get("uploadId", ""), None)
            if parts is None:
                return self._refuse(404, "NoSuchUpload")
            content = b"".join(parts[number] for number in sorted(parts))
            self._store(bucket, key, content)
        return self._answer(200, f'{_XML}<R><ETag>"1"</ETag></R>'.encode(), {"ETag": '"1"'})

    def do_GET(self) -> None:
        bucket, key, query = self._target()
        if not key:
            return self._list(bucket, query)
        with self.server.lock:
            body = self.server.objects.get((bucket, key))
        if body is None:
            return self._refuse(404, "NoSuchKey")
        headers = {"ETag": '"1"', "Last-Modified": formatdate(self.server.times[bucket, key], usegmt=True)}
        span = self.headers.get("Range")
        if span is None or self.command == "HEAD":
            return self._answer(200, body, headers)
        first, _, last = span.removeprefix("bytes=").partition("-")
        if int(first) >= len(body):
            return self._refuse(416, "InvalidRange")
        part = body[int(first) : int(last or len(body) - 1) + 1]
        bounds = f"bytes {first}-{int(first) + len(part) - 1}/{len(body)}"
        return self._answer(206, part, {**headers, "Content-Range": bounds})

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        bucket, key, query = self._target()
        with self.server.lock:
            if "uploadId" in query:
                self.server.uploads.pop(query["uploadId"], None)
            else:
                self.server.remove(bucket, key)
        self._answer(204)

    def _forbids(self) -> bool:
        return self.headers.get("x-oss-forbid-overwrite") == "true"

    def _store(self, bucket: str, key: str, body: bytes) -> None:
        self.server.put(bucket, key, body, {name.lower(): value for name, value in self.headers.items()})

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix, delimiter, most = query.get("prefix", ""), query.get("delimiter", ""), int(query.get("max-keys", "100"))
        after = query.get("continuation-token", "")
        with self.server.lock:
            page, truncated = self.server.page(bucket, prefix, delimiter, after, most)
            stored = [
                (quote(key), _date(self.server.times[bucket, key]), len(self.server.objects[bucket, key]))
                for key, grouped in page.items()
                if not grouped
            ]
        keys = "".join(
            f"<Contents><Key>{key}</Key><LastModified>{date}</LastModified><ETag>&quot;1&quot;</ETag>"
            f"<Type>Normal</Type><Size>{size}</Size><StorageClass>Standard</StorageClass></Contents>"
            for key, date, size in stored
        )
        prefixes = "".join(
            f"<CommonPrefixes><Prefix>{quote(name)}</Prefix></CommonPrefixes>"
            for name, grouped in page.items()
            if grouped
        )
        token = f"<NextContinuationToken>{quote(list(page)[-1])}</NextContinuationToken>" if truncated else ""
        text = (
            f"{_XML}<ListBucketResult><Name>{bucket}</Name><EncodingType>url</EncodingType><Prefix>{quote(prefix)}</Prefix>"
            f"<MaxKeys>{most}</MaxKeys><KeyCount>{len(page)}</KeyCount>"
            f"<IsTruncated>{'true' if truncated else 'false'}</IsTruncated>{token}{keys}{prefixes}</ListBucketResult>"
        )
        self._answer(200, text.encode())

    def _target(self) -> tuple[str, str, dict[str, str]]:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path.lstrip("/")).partition("/")
        return bucket, key, {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"x-oss-request-id": "0", "Content-Type": "application/xml", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, f"{_XML}<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


@contextmanager
def oss_double() -> Iterator[OssServer]:
    """Start the stand-in; every bucket exists."""
    found = OssServer()
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.shutdown()
        thread.join()
        found.server_close()


def options(port: int) -> dict[str, str]:
    """Return the storage options with which the engine reaches the stand-in."""
    return {"oss.endpoint": f"http://127.0.0.1:{port}", "oss.accessKeyId": "key", "oss.accessKeySecret": "secret"}
