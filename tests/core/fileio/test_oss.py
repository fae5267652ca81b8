"""Alibaba OSS: options of Hadoop and Paimon, and the requests of the client, at a stand-in."""

import pytest

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.oss import oss_arguments
from tests.support.places import oss_double

oss_client = pytest.importorskip("paimon_core.fileio.oss_client", reason="the extra oss is not installed")
SSE = "x-oss-server-side-encryption"


@pytest.fixture(scope="module")
def server():
    with oss_double.oss_double() as found:
        yield found


@pytest.fixture
def options(server):
    return oss_double.options(server.server_address[1])


@pytest.mark.parametrize("prefix", ["oss.", "fs.oss.", "spark.hadoop.fs.oss."])
def test_every_prefix_means_same(prefix):
    given = {"endpoint": "h", "accessKeyId": "k", "ACCESSKEYSECRET": "s", "securityToken": "t", "sld.enabled": "true"}
    assert oss_arguments({prefix + name: value for name, value in given.items()}) == {
        "endpoint": "https://h",
        "key": "k",
        "secret": "s",
        "token": "t",
        "path_style": True,
    }


def test_endpoint_is_required_and_follows_ssl(monkeypatch):
    monkeypatch.delenv("OSS_ENDPOINT", raising=False)
    with pytest.raises(InvalidInputError, match=r"oss\.endpoint"):
        oss_arguments({})
    plain = {"oss.endpoint": "h", "fs.oss.connection.secure.enabled": "false"}
    assert oss_arguments(plain) == {"endpoint": "http://h"}
    monkeypatch.setenv("OSS_ENDPOINT", "e")
    assert oss_arguments({"fs.oss.threads.max": "3"}) == {"endpoint": "https://e"}


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({"server-side-encryption": "aes256"}, {SSE: "AES256"}),
        ({"server-side-encryption-key-id": "k"}, {SSE: "KMS", f"{SSE}-key-id": "k"}),
        ({"server-side-data-encryption": "SM4"}, {SSE: "KMS", "x-oss-server-side-data-encryption": "SM4"}),
        ({"server-side-encryption-algorithm": "AES256"}, {SSE: "AES256"}),
    ],
)
def test_encryption_of_new_objects(server, options, settings, headers):
    io = FileIO.of("oss://bucket/t", {**options, **{f"fs.oss.{name}": value for name, value in settings.items()}})
    io.write("oss://bucket/sse/one", b"1")
    with io.create("oss://bucket/sse/parts") as sink:
        sink.write(b"x")
    assert io.create_exclusive("oss://bucket/sse/exclusive", b"1")
    io.copy_within("oss://bucket/sse/one", "oss://bucket/sse/copy")
    for name in ("one", "parts", "exclusive", "copy"):
        sent = server.headers["bucket", f"sse/{name}"]
        assert {key: sent.get(key) for key in headers} == headers, name
    io.delete_directory("oss://bucket/sse")


@pytest.mark.parametrize(
    "key",
    [
        *("oss.acess", "fs.oss.credentials.provider", "fs.oss.proxy.host", "anon", "oss.sld.enabled"),
        *("oss.server-side-encryption", "oss.server-side-data-encryption"),
    ],
)
def test_unsupported_settings_are_refused_by_name_without_their_value(key):
    with pytest.raises(InvalidInputError) as caught:
        oss_arguments({"oss.endpoint": "h", key: "sesame"})
    assert key.removeprefix("fs.") in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_bucket_with_versioning_is_refused(options):
    io = FileIO.of("oss://versioned/t", options)
    with pytest.raises(UnsupportedError, match="does not honour conditional puts"):
        io.create_exclusive("oss://versioned/t/snapshot/snapshot-1", b"1")
    assert io.list("oss://versioned/t") == []


def test_large_objects_are_copied_in_parts(options, monkeypatch):
    monkeypatch.setattr(oss_client, "_COPIED_AT_ONCE", 10)
    monkeypatch.setattr(oss_client, "_PART", 7)
    io = FileIO.of("oss://bucket/t", options)
    io.write("oss://bucket/c/f", bytes(range(30)))
    io.copy_within("oss://bucket/c/f", "oss://bucket/c/g")
    assert io.read("oss://bucket/c/g") == bytes(range(30))
    with pytest.raises(FileNotFoundError):
        io.copy_within("oss://bucket/c/missing", "oss://bucket/c/h")


def test_pages_of_listing(options, monkeypatch):
    monkeypatch.setattr(oss_client, "_PAGE", 3)
    io = FileIO.of("oss://bucket/t", options)
    for name in ("a", "b/1", "b/2", "c", "d", "e/1", "f"):
        io.write(f"oss://bucket/pages/{name}", b"")
    assert sorted(s.name for s in io.list("oss://bucket/pages")) == ["a", "b", "c", "d", "e", "f"]
    io.delete_directory("oss://bucket/pages")
    assert io.list("oss://bucket/pages") == []


def test_unreachable_store_is_os_error_without_secrets(monkeypatch):
    monkeypatch.setattr(oss_client, "ATTEMPTS", 2)
    io = FileIO.of("oss://bucket/t", {"oss.endpoint": "http://127.0.0.1:9", "key": "open", "secret": "sesame"})
    with pytest.raises(OSError, match="OSS does not answer") as caught:
        io.exists("oss://bucket/t/f")
    assert "sesame" not in repr(caught.value) + str(caught.value.__cause__) + repr(io)
    assert not isinstance(caught.value, FileNotFoundError)


def test_part_of_a_body_is_not_taken_for_the_file(options, monkeypatch):
    io = FileIO.of("oss://bucket/t", options)
    io.write("oss://bucket/cut/f", b"0123456789")
    read, cuts = oss_client.models.GetObjectResult.read, [True]
    monkeypatch.setattr(
        oss_client.models.GetObjectResult, "read", lambda self: read(self)[:4] if cuts and cuts.pop() else read(self)
    )
    assert io.read("oss://bucket/cut/f") == b"0123456789"
    assert not cuts
