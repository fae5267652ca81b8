"""The HTTP client of the REST catalog: retries, pages, errors and secrets."""

import pickle
import sys

import pytest

from paimon_core.catalog.rest.client import RestClient, RestNotFoundError, RestServerError, encoded
from paimon_core.errors import (
    AlreadyExistsError,
    InvalidInputError,
    MissingDependencyError,
    PermissionDeniedError,
    UnsupportedError,
)
from tests.support.rest_server import BREAK, scripted_server

TOKEN = "very-secret-token"
OPTIONS = {"token.provider": "bear", "token": TOKEN, "header.X-Tenant": "t1"}


@pytest.fixture
def server():
    with scripted_server() as running:
        yield running


@pytest.fixture
def waits():
    return []


@pytest.fixture
def client(server, waits):
    return RestClient(server.uri + "/", OPTIONS, sleep=waits.append)


def test_request_carries_token_headers_and_body(server, client, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server.script((200, {"a": 1}), (200, None))
    assert client.get("/v1/config", {"warehouse": "a b"}) == {"a": 1}
    assert client.post("/v1/x", {"name": "ä"}) == {}
    first, second = server.asked
    assert (first.method, first.path, first.body) == ("GET", "/v1/config?warehouse=a+b", None)
    assert (second.method, second.body) == ("POST", {"name": "ä"})
    for asked in server.asked:
        assert asked.headers["Authorization"] == f"Bearer {TOKEN}"
        assert asked.headers["X-Tenant"] == "t1"


def test_names_are_encoded_as_in_java(server, client):
    server.script((200, {}))
    client.get("/v1" + encoded("databases", "d b", "tables", "t$branch_ä/1"))
    assert server.asked[0].path == "/v1/databases/d+b/tables/t%24branch_%C3%A4%2F1"


def test_reads_are_repeated_after_a_broken_connection(server, client, waits):
    server.script(BREAK, BREAK, (200, {"a": 1}))
    assert client.get("/v1/x") == {"a": 1}
    assert len(waits) == 2
    assert 1 <= waits[0] < 2 <= waits[1] < 2.3


def test_posts_are_sent_once_if_the_connection_breaks(server, client, waits):
    server.script(BREAK)
    with pytest.raises(RestServerError, match=r"POST http://127.0.0.1:[0-9]+/v1/x got no answer"):
        client.post("/v1/x", {})
    assert (len(server.asked), waits) == (1, [])


def test_busy_server_is_asked_again_when_it_says(server, client, waits):
    server.script((503, {}, {"Retry-After": "7"}), (429, {}, {"Retry-After": "9999"}), (503, {}), (200, {"a": 1}))
    assert client.post("/v1/x", {}) == {"a": 1}
    assert waits[:2] == [7, 64]
    assert 4 <= waits[2] < 4.5


def test_retries_end(server, client, waits):
    server.answer = lambda asked: (503, {"message": "too busy", "code": 503})
    with pytest.raises(RestServerError, match=r"the catalog's server failed: too busy \(status 503 of GET"):
        client.get("/v1/x")
    assert len(server.asked) == 6
    assert len(waits) == 5


def test_unreachable_server_is_asked_once(waits):
    client = RestClient("127.0.0.1:1", OPTIONS, sleep=waits.append)
    with pytest.raises(RestServerError, match="check that the server at option 'uri' runs"):
        client.get("/v1/x")
    assert waits == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInputError),
        (401, PermissionDeniedError),
        (403, PermissionDeniedError),
        (404, RestNotFoundError),
        (409, AlreadyExistsError),
        (500, RestServerError),
        (501, UnsupportedError),
        (302, RestServerError),
        (418, RestServerError),
    ],
)
def test_status_decides_the_error(server, client, status, kind):
    said = {"message": f"no {TOKEN}", "resourceType": "TABLE", "resourceName": "t", "code": status}
    server.script((status, said, {"x-request-id": "r-1"}))
    with pytest.raises(kind) as error:
        client.get("/v1/x")
    assert type(error.value) is kind
    assert f"no *** (status {status} of GET {server.uri}/v1/x, request r-1)" in str(error.value)
    assert TOKEN not in str(error.value)
    if isinstance(error.value, RestNotFoundError):
        assert (error.value.kind, error.value.name) == ("TABLE", "t")


def test_answer_that_is_not_json_is_not_shown(server, client):
    server.script((200, [TOKEN]), (404, ["page"]))
    with pytest.raises(RestServerError, match="not a JSON object") as error:
        client.get("/v1/x")
    assert TOKEN not in str(error.value)
    with pytest.raises(RestNotFoundError, match="no message"):
        client.get("/v1/x")


def test_pages_are_read_until_the_last(server, client):
    server.script(
        (200, {"tables": ["a", "b"], "nextPageToken": "b"}),
        (200, {"tables": ["c"], "nextPageToken": "c"}),
        (200, {"tables": None, "nextPageToken": None}),
    )
    assert list(client.pages("/v1/tables", "tables", {"tableNamePattern": "x%"})) == ["a", "b", "c"]
    assert [asked.path.partition("?")[2] for asked in server.asked] == [
        "tableNamePattern=x%25",
        "tableNamePattern=x%25&pageToken=b",
        "tableNamePattern=x%25&pageToken=c",
    ]


def test_pages_without_an_end_are_an_error(server, client):
    server.answer = lambda asked: (200, {"tables": ["a"], "nextPageToken": "same"})
    with pytest.raises(RestServerError, match="the same page token twice"):
        list(client.pages("/v1/tables", "tables"))


def test_pickled_client_works_and_hides_its_token(server, client):
    server.script((200, {"a": 1}), (200, {"a": 2}))
    client.get("/v1/x")
    again = pickle.loads(pickle.dumps(client))
    assert again.get("/v1/x") == {"a": 2}
    assert TOKEN not in repr(again)


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-paimon\[rest\]'"):
        RestClient("h", OPTIONS).get("/v1/x")


def test_address_is_needed():
    with pytest.raises(InvalidInputError, match="needs the option 'uri'"):
        RestClient("", OPTIONS)
