"""Google Cloud Storage: options of Hadoop and Paimon as arguments of gcsfs, and the error of a taken key."""

import json

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.gcs import create_object, gcs_arguments

PLAIN = {"use_listings_cache": False}


@pytest.mark.parametrize("prefix", ["gs.", "gcs.", "fs.gs.", "spark.hadoop.fs.gs."])
def test_every_prefix_means_same(prefix):
    options = {f"{prefix}project.id": "p", f"{prefix}storage.root.url": "http://h:1/", f"{prefix}auth.type": "X"}
    options[f"{prefix}auth.type"] = "UNAUTHENTICATED"
    assert gcs_arguments(options) == {"project": "p", "endpoint_url": "http://h:1", "token": "anon", **PLAIN}


@pytest.mark.parametrize(
    ("options", "token"),
    [
        ({}, None),
        ({"gs.auth.type": "APPLICATION_DEFAULT"}, "google_default"),
        ({"gs.auth.type": "compute_engine"}, "cloud"),
        ({"fs.gs.auth.service.account.json.keyfile": "/k.json"}, "/k.json"),
        ({"gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "gs.auth.service.account.json.keyfile": "/k"}, "/k"),
        ({"gs.auth.null.enable": "true"}, "anon"),
        ({"token": json.dumps({"a": 1})}, {"a": 1}),
        (
            {
                "gs.auth.service.account.email": "e",
                "gs.auth.service.account.private.key.id": "i",
                "gs.auth.service.account.private.key": "a\\nb",
            },
            {
                "type": "service_account",
                "token_uri": "https://oauth2.googleapis.com/token",
                "client_email": "e",
                "private_key_id": "i",
                "private_key": "a\nb",
            },
        ),
        (
            {
                "gs.auth.type": "USER_CREDENTIALS",
                "gs.auth.client.id": "c",
                "gs.auth.client.secret": "s",
                "gs.auth.refresh.token": "r",
            },
            {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"},
        ),
    ],
)
def test_credentials(options, token):
    assert gcs_arguments(options).get("token") == token


def test_payer_of_requests():
    assert "requester_pays" not in gcs_arguments({"gs.requester.pays.mode": "DISABLED"})
    assert gcs_arguments({"gs.requester.pays.mode": "AUTO"})["requester_pays"] is True
    assert gcs_arguments({"gs.requester.pays.project.id": "p"})["requester_pays"] == "p"
    assert gcs_arguments({"requester_pays": "false"})["requester_pays"] is False


def test_tuning_of_hadoop_is_ignored():
    tuning = {"fs.gs.block.size": "1", "fs.gs.outputstream.upload.chunk.size": "9", "fs.gs.impl": "x"}
    assert gcs_arguments(tuning) == PLAIN


@pytest.mark.parametrize(
    "key",
    [
        *("gs.acess", "gs.encryption.key", "fs.gs.auth.impersonation.service.account", "key", "s4.x"),
        *("gs.requester.pays.mode", "gs.auth.type", "session_kwargs"),
    ],
)
def test_unsupported_settings_are_refused_by_name_without_their_value(key):
    with pytest.raises(InvalidInputError) as caught:
        gcs_arguments({key: "sesame"})
    assert key.removeprefix("fs.") in str(caught.value)
    assert "sesame" not in str(caught.value)


class _Answering:
    def __init__(self, error):
        self.error = error

    def pipe_file(self, path, data, mode):
        assert mode == "create"
        raise self.error


@pytest.mark.parametrize("code", [412, "412"])
def test_412_of_gcsfs_is_taken_key(code):
    error = Exception("precondition")
    error.code = code
    assert create_object(_Answering(error), "b/k", b"") is False
    assert create_object(_Answering(FileExistsError("b/k")), "b/k", b"") is False


def test_other_errors_are_not_taken_keys():
    error = Exception("unavailable")
    error.code = 503
    with pytest.raises(Exception, match="unavailable"):
        create_object(_Answering(error), "b/k", b"")
