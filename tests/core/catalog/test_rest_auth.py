"""The authentication of requests to a REST catalog."""

import json
from datetime import datetime, timezone

import pytest

from paimon_core.catalog.rest.auth import (
    BearerToken,
    DefaultSigner,
    Dlf,
    DlfKey,
    OpenApiSigner,
    Request,
    authenticator_of,
)
from paimon_core.errors import InvalidInputError

NOW = datetime(2026, 3, 5, 7, 8, 9, tzinfo=timezone.utc)
BODY = '{"name":"däta","options":{}}'
REQUESTS = {
    "query": (Request("GET", "/v1/config", {"warehouse": "wh a"}), None),
    "body": (Request("POST", "/v1/paimon/databases/db/tables/t%24branch_b/commit", {}, BODY), "sts+token/="),
    "pages": (
        Request(
            "GET",
            "/v1/p/databases/db+x/tables",
            {"pageToken": "t/1=", "maxResults": "2", "tableNamePattern": "a%"},
        ),
        "sts",
    ),
}
SIGNED_BY_JAVA = {
    "query": "c2733f287e59f375a4d2bb541d231abf85bf8389b3a052ffd965adf07272e8b3",
    "body": "4715c2d8eaa4123c02cf1850951e612053280295a29890bf2cb5e7f79d580692",
    "pages": "85bdb176434d9b3995fa100cbb86fad00cd0c64654a1c1521770d22f07cf95a0",
}
SIGNED_BY_JAVA_FOR_OPENAPI = {
    "query": "UTp4E2n1xVzvWeZbymEqnyghxyU=",
    "body": "maRvs7ztZqvWVBVvISA7fiYe0n0=",
    "pages": "lfmIqnayXlzn4uMusIPajfME5JM=",
}
"""What `DLFDefaultSigner` and `DLFOpenApiSigner` of paimon-bundle 1.4.2 answer for these requests, key and time."""


@pytest.mark.parametrize("case", REQUESTS)
def test_default_signature_is_that_of_java(case):
    request, security_token = REQUESTS[case]
    headers = DefaultSigner("cn-hangzhou").sign(request, DlfKey("AKID", "SECRET", security_token), NOW)
    scope = "AKID/20260305/cn-hangzhou/DlfNext/aliyun_v4_request"
    assert headers.pop("Authorization") == (f"DLF4-HMAC-SHA256 Credential={scope},Signature={SIGNED_BY_JAVA[case]}")
    assert headers["x-dlf-date"] == "20260305T070809Z"
    assert headers.get("x-dlf-security-token") == security_token
    assert headers.get("Content-MD5") == ("esARsTOciWc6CLhXbLzIIA==" if request.body else None)


@pytest.mark.parametrize("case", REQUESTS)
def test_openapi_signature_is_that_of_java(case):
    request, security_token = REQUESTS[case]
    signer = OpenApiSigner("dlfnext.cn-hangzhou.aliyuncs.com", nonce=lambda: "nonce-1")
    headers = signer.sign(request, DlfKey("AKID", "SECRET", security_token), NOW)
    assert headers["Authorization"] == f"acs AKID:{SIGNED_BY_JAVA_FOR_OPENAPI[case]}"
    assert headers["Date"] == "Thu, 05 Mar 2026 07:08:09 GMT"
    assert headers["Host"] == "dlfnext.cn-hangzhou.aliyuncs.com"


def test_key_of_file_is_renewed_one_hour_before_its_end(tmp_path):
    path, time = tmp_path / "token", [NOW.timestamp()]

    def write(key_id, end):
        path.write_text(
            json.dumps({"AccessKeyId": key_id, "AccessKeySecret": "s", "SecurityToken": "t", "Expiration": end})
        )

    write("first", "2026-03-05T09:08:09Z")
    options = {"token.provider": "dlf", "dlf.region": "cn-hangzhou", "dlf.token-path": str(path)}
    found = authenticator_of(options, lambda url: "")
    assert isinstance(found, Dlf)
    found._now = lambda: time[0]
    request = Request("GET", "/v1/config")
    assert "Credential=first/" in found.headers(request)["Authorization"]
    write("second", "2026-03-06T09:08:09Z")
    time[0] += 3600
    assert "Credential=first/" in found.headers(request)["Authorization"]
    time[0] += 1
    assert "Credential=second/" in found.headers(request)["Authorization"]
    assert found.secrets() == ("s", "t")


def test_key_of_virtual_machine_comes_from_its_service():
    asked = []

    def fetch(url):
        asked.append(url)
        return "role\n" if url.endswith("/") else '{"AccessKeyId": "i", "AccessKeySecret": "s"}'

    options = {"token.provider": "dlf", "dlf.token-loader": "ecs", "dlf.token-ecs-metadata-url": "http://ecs/"}
    headers = authenticator_of({**options, "uri": "http://pre-cn-shanghai.x"}, fetch).headers(Request("GET", "/"))
    assert asked == ["http://ecs/", "http://ecs/role"]
    assert "/cn-shanghai/DlfNext/" in headers["Authorization"]


def test_broken_credentials_are_not_shown():
    with pytest.raises(InvalidInputError, match="the credentials from here cannot be read") as error:
        DlfKey.from_json('{"AccessKeyId": "i", "AccessKeySecret": "hidden", ', "here")
    assert "hidden" not in str(error.value)
    assert error.value.__suppress_context__
    assert "hidden" not in repr((BearerToken("hidden"), DlfKey("i", "hidden", "hidden")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option 'token.provider'"),
        ({"token.provider": "bearer"}, "it can be 'bear' or 'dlf' .did you mean 'bear'"),
        ({"token.provider": "bear"}, "token.provider=bear needs the option 'token'"),
        ({"token.provider": "dlf", "dlf.region": "r"}, "needs the option 'dlf.access-key-id'"),
        ({"token.provider": "dlf", "uri": "http://1"}, "needs the option 'dlf.region'"),
        ({"token.provider": "dlf", "dlf.signing-algorithm": "md5"}, "it can be 'default' or 'openapi'"),
        ({"token.provider": "dlf", "dlf.region": "r", "dlf.token-loader": "x"}, "it can be 'local_file' or 'ecs'"),
    ],
)
def test_missing_and_wrong_options_are_named(options, message):
    with pytest.raises(InvalidInputError, match=message):
        authenticator_of(options, lambda url: "")


def test_signing_algorithm_follows_from_the_address():
    options = {"token.provider": "dlf", "dlf.access-key-id": "i", "dlf.access-key-secret": "s"}
    public = authenticator_of({**options, "uri": "https://dlfnext.cn-hangzhou.aliyuncs.com"}, lambda url: "")
    assert public.headers(Request("GET", "/"))["Authorization"].startswith("acs i:")
    private = authenticator_of({**options, "uri": "https://cn-hangzhou-vpc.dlf.aliyuncs.com"}, lambda url: "")
    assert private.headers(Request("GET", "/"))["Authorization"].startswith("DLF4-HMAC-SHA256 Credential=i/")
