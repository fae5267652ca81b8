"""S3: options in every spelling, and the methods of FileIO with a server."""

import base64
import json
import logging
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.s3 import is_amazon, s3_arguments
from tests.support.places.proxy import faulty_proxy
from tests.support.s3_server import s3_server


@pytest.fixture(scope="module")
def server():
    with s3_server() as found:
        yield found


def test_eight_racing_creators_have_one_winner(server):
    root, options = server
    path = f"{root}/race/snapshot/snapshot-1"
    racers = [FileIO.of(root, options) for _ in range(8)]  # as eight processes would come
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: racers[n].create_exclusive(path, b"%d" % n), range(8)))
    assert won.count(True) == 1
    assert racers[0].read(path) == b"%d" % won.index(True)
    assert [status.name for status in racers[0].list(f"{root}/race/snapshot")] == ["snapshot-1"]


def test_methods_on_s3(server):
    root, options = server
    io = pickle.loads(pickle.dumps(FileIO.of(root, options)))
    path = f"{root}/verbs/bucket-0/f"
    assert io.can_commit
    assert io.list(f"{root}/verbs") == []
    assert not io.exists(path)
    with pytest.raises(FileNotFoundError):
        io.read(path)
    with pytest.raises(FileNotFoundError):
        io.open(path)
    io.write(path, b"one")
    assert io.exists(path)
    assert io.exists(f"{root}/verbs")
    other = FileIO.of(root, options)
    assert [status.name for status in other.list(f"{root}/verbs")] == ["bucket-0"]
    io.write(f"{root}/verbs/g", b"two")
    listed = sorted(other.list(f"{root}/verbs"), key=lambda status: status.name)
    assert [(s.path, s.size, s.is_directory) for s in listed] == [
        (f"{root}/verbs/bucket-0", 0, True),
        (f"{root}/verbs/g", 3, False),
    ]
    assert 1_600_000_000_000 < listed[1].modified_ms < 2**53
    assert io.read(path.replace("s3://", "s3a://")) == b"one"
    io.rename_directory(f"{root}/verbs", f"{root}/moved")
    assert io.read(f"{root}/moved/bucket-0/f") == b"one"
    assert io.list(f"{root}/verbs") == []
    io.delete(f"{root}/moved/g")
    io.delete(f"{root}/moved/g")
    io.delete_directory(f"{root}/moved")
    io.delete_directory(f"{root}/moved")
    assert io.list(f"{root}/moved") == []


def test_whole_file_is_read_in_one_request(server):
    root, options = server
    FileIO.of(root, options).write(f"{root}/one/request", b"12345")
    with faulty_proxy(int(options["s3.endpoint"].rpartition(":")[2])) as proxy:
        io = FileIO.of(root, {**options, "s3.endpoint": f"http://127.0.0.1:{proxy.port}"})
        assert io.read(f"{root}/one/request") == b"12345"
        with io.open(f"{root}/one/request", 5) as file:
            assert file.read() == b"12345"
        with pytest.raises(FileNotFoundError):
            io.read(f"{root}/one/missing")
    assert [line.partition(" ")[0] for line in proxy.seen] == ["GET"] * 3


def test_parquet_through_s3_small_and_large(server):
    root, options = server
    io = FileIO.of(root, options)
    for rows in (1000, 1_500_000):  # fetched at once; through the window
        table = pa.table({"a": pa.array(range(rows)), "b": pa.array(range(rows))})
        with io.create(f"{root}/{rows}.parquet") as sink:
            pq.write_table(table, sink, compression="none", use_dictionary=False)
        assert pq.read_table(io.open(f"{root}/{rows}.parquet"), columns=["b"]) == table.select(["b"])


def test_failed_upload_leaves_nothing(server):
    root, options = server
    io = FileIO.of(root, options)

    def fail():
        with io.create(f"{root}/failed") as sink:
            sink.write(b"x" * (6 << 20))  # a part has gone out already
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not io.exists(f"{root}/failed")


def test_forked_child_opens_new_connections(server):
    root, options = server
    io = FileIO.of(root, options)
    io.write(f"{root}/forked", b"seen")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=lambda: answers.put(io.read(f"{root}/forked")))
    child.start()
    child.join(30)
    if child.is_alive():
        child.kill()
    assert child.exitcode == 0
    assert answers.get() == b"seen"


def test_store_that_ignores_conditions_is_detected():
    with s3_server(ignore_conditions=True) as (root, options):
        io = FileIO.of(root, options)
        for _ in range(2):
            with pytest.raises(UnsupportedError, match="If-None-Match"):
                io.create_exclusive(f"{root}/t/snapshot/snapshot-1", b"1")
        assert io.list(f"{root}/t/snapshot") == []


def test_unreachable_store_is_os_error_without_secrets(caplog):
    options = {"s3.endpoint": "http://127.0.0.1:9", "s3.access-key": "open", "s3.secret-key": "sesame"}
    options["config_kwargs"] = json.dumps({"connect_timeout": 1, "retries": {"max_attempts": 0}})
    io = FileIO.of("s3://b/t", options)
    with caplog.at_level(logging.WARNING), pytest.raises(OSError) as caught:
        io.exists("s3://b/t/f")
    shown = repr(caught.value) + str(caught.value.__cause__) + repr(io) + caplog.text
    assert "sesame" not in shown
    assert not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize(
    "spelling",
    [
        ("s3.endpoint", "s3.access-key", "s3.secret-key", "s3.path.style.access", "s3.region", "s3.session.token"),
        (
            "fs.s3a.endpoint",
            "fs.s3a.access.key",
            "fs.s3a.secret.key",
            "fs.s3a.path.style.access",
            "fs.s3a.endpoint.region",
            "fs.s3a.session.token",
        ),
        (
            "s3a.endpoint",
            "s3a.access-key",
            "s3a.secret-key",
            "s3a.path-style-access",
            "s3a.region",
            "s3a.session-token",
        ),
        (
            "spark.hadoop.fs.s3a.endpoint",
            "spark.hadoop.fs.s3a.access.key",
            "spark.hadoop.fs.s3a.secret.key",
            "spark.hadoop.fs.s3a.path.style.access",
            "spark.hadoop.fs.s3a.endpoint.region",
            "spark.hadoop.fs.s3a.session.token",
        ),
    ],
)
def test_every_spelling_means_same(spelling):
    options = dict(zip(spelling, ("http://h:1", "k", "s", "true", "eu-west-1", "t"), strict=True))
    assert s3_arguments(options) == {
        "endpoint_url": "http://h:1",
        "key": "k",
        "secret": "s",
        "token": "t",
        "client_kwargs": {"region_name": "eu-west-1"},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
        "use_listings_cache": False,
    }


def test_own_names_of_s3fs_pass_and_text_becomes_values():
    got = s3_arguments({"key": "k", "anon": "false", "client_kwargs": '{"region_name": "x"}', "max_concurrency": "3"})
    expected = {"key": "k", "anon": False, "client_kwargs": {"region_name": "x"}, "max_concurrency": 3}
    assert got == {**expected, "use_listings_cache": False}
    assert s3_arguments({}) == {"use_listings_cache": False}


def test_endpoint_without_scheme_follows_ssl_setting():
    assert s3_arguments({"s3.endpoint": "h:9000"})["endpoint_url"] == "https://h:9000"
    plain = s3_arguments({"s3.endpoint": "h:9000", "fs.s3a.connection.ssl.enabled": "false"})
    assert plain["endpoint_url"] == "http://h:9000"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("s3.acess-key", "sesame"),
        ("fs.s3a.encryption.algorithm", "sesame"),
        ("fs.s3a.encryption.key", "sesame"),
        ("fs.s3a.encryption.context", "sesame"),
        ("fs.s3a.aws.credentials.provider", "com.example.sesame"),
        ("fs.s3a.assumed.role.credentials.provider", "sesame"),
        ("s3.path.style.access", "sesame"),
        ("max_concurrency", "sesame"),
        ("client_kwargs", "{sesame"),
        ("s4.access-key", "sesame"),
    ],
)
def test_unsupported_settings_are_refused_by_name_without_their_value(key, value):
    with pytest.raises(InvalidInputError) as caught:
        s3_arguments({key: value})
    assert key.removeprefix("s3.") in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_hadoop_tuning_is_accepted_and_ignored():
    tuning = {"fs.s3a.impl": "x", "fs.s3a.connection.maximum": "9", "fs.s3a.fast.upload": "true", "s3.threads.max": "1"}
    assert s3_arguments(tuning) == {"use_listings_cache": False}


@pytest.mark.parametrize("name", ["org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider", None])
def test_role_is_assumed_with_keys_of_options(server, name):
    root, options = server
    given = {
        "fs.s3a.assumed.role.arn": "arn:aws:iam::123456789012:role/writer",
        "fs.s3a.assumed.role.session.name": "me",
    }
    given |= {"fs.s3a.assumed.role.sts.endpoint": options["s3.endpoint"], "fs.s3a.assumed.role.session.duration": "30m"}
    if name is not None:
        given["fs.s3a.aws.credentials.provider"] = name
    arguments = s3_arguments({**options, **given})
    assert arguments["role"]["DurationSeconds"] == 1800
    io = FileIO.of(root, {**options, **given})
    path = f"{root}/role-{name is None}/f"
    assert io.create_exclusive(path, b"1")
    assert FileIO.of(root, options).read(path) == b"1"
    filesystem = io._storage(root)._fs
    assert filesystem.key is None
    assert filesystem.s3._request_signer._credentials.method == "assume-role"
    assert options["s3.secret-key"] not in repr(io)


def test_role_of_another_provider_is_not_assumed():
    provider = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
    assert "role" not in s3_arguments({"s3.assumed.role.arn": "a", "s3.aws.credentials.provider": provider})


@pytest.mark.parametrize(
    ("algorithm", "key", "arguments"),
    [
        ("AES256", "", {"ServerSideEncryption": "AES256"}),
        ("SSE-KMS", "", {"ServerSideEncryption": "aws:kms"}),
        ("SSE-KMS", "alias/k", {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "alias/k"}),
        ("DSSE-KMS", "k", {"ServerSideEncryption": "aws:kms:dsse", "SSEKMSKeyId": "k"}),
    ],
)
@pytest.mark.parametrize("prefix", ["fs.s3a.encryption.", "s3.server-side-encryption-"])
def test_encryption_of_new_objects(prefix, algorithm, key, arguments):
    options = {f"{prefix}algorithm": algorithm, **({f"{prefix}key": key} if key else {})}
    assert s3_arguments(options)["s3_additional_kwargs"] == arguments


def test_objects_are_encrypted_by_key_of_service(server):
    root, options = server
    io = FileIO.of(root, {**options, "fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "alias/mine"})
    assert io.create_exclusive(f"{root}/kms/one", b"1")
    with io.create(f"{root}/kms/parts") as sink:
        sink.write(b"x" * (11 << 20))
    assert io.copy_within(f"{root}/kms/one", f"{root}/kms/copy")
    filesystem = io._storage(root)._fs
    for name in ("one", "parts", "copy"):
        head = filesystem.call_s3("head_object", Bucket=root[5:], Key=f"kms/{name}")
        assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", "alias/mine")


def test_objects_are_encrypted_by_key_of_customer(server):
    """The stand-in keeps no keys: the requests carry them."""
    root, options = server
    key = base64.b64encode(b"k" * 32).decode()
    io = FileIO.of(root, {**options, "fs.s3a.encryption.algorithm": "SSE-C", "fs.s3a.encryption.key": key})
    sent = []
    client = io._storage(root)._fs
    client.connect()
    client.s3.meta.events.register("before-send.s3", lambda request, **more: sent.append(request))
    assert io.create_exclusive(f"{root}/c/one", b"1")
    assert io.read(f"{root}/c/one") == b"1"
    assert io.copy_within(f"{root}/c/one", f"{root}/c/copy")
    name = "x-amz-server-side-encryption-customer-key"
    by_method = {request.method: {k.lower(): v for k, v in request.headers.items()} for request in sent}
    assert by_method["GET"][name] == key.encode()
    assert {"x-amz-copy-source-server-side-encryption-customer-key", name} <= by_method["PUT"].keys()


def test_only_amazons_own_stores_need_no_test_of_conditions():
    assert is_amazon({})
    assert is_amazon({"endpoint_url": "https://s3.eu-west-1.amazonaws.com"})
    assert not is_amazon({"endpoint_url": "http://minio:9000"})
    assert not is_amazon({"endpoint_url": "http://s3.amazonaws.com.evil.example"})
    assert not is_amazon({"client_kwargs": {"endpoint_url": "http://minio:9000"}})
