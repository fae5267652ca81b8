"""Iceberg metadata as plain values, read with json and fastavro alone, from any FileIO."""

import io
import json
from dataclasses import dataclass
from typing import Any

import fastavro

from paimon_core.fileio.fileio import FileIO


@dataclass(frozen=True)
class Described:
    """The version that the hint names."""

    version: int
    document: dict[str, Any]
    files: dict[int, dict[str, dict[str, Any]]]
    """By snapshot: the records of the live files in its manifests, by name."""
    named: frozenset[str]
    """The names of all files beside the metadata that the version needs, and of the hint."""


def records(files: FileIO, path: str) -> list[dict[str, Any]]:
    """The records of an Avro file."""
    return list(fastavro.reader(io.BytesIO(files.read(path))))


def described(files: FileIO, directory: str) -> Described:
    """Return the contents of the metadata in a directory; every file that it names must exist."""
    version = int(files.read(f"{directory}/version-hint.text"))
    document = json.loads(files.read(f"{directory}/v{version}.metadata.json"))
    found: dict[int, dict[str, dict[str, Any]]] = {}
    named = {"version-hint.text", f"v{version}.metadata.json"}
    for snapshot in document["snapshots"]:
        live = found[snapshot["snapshot-id"]] = {}
        named.add(snapshot["manifest-list"].rpartition("/")[2])
        for meta in records(files, snapshot["manifest-list"]):
            named.add(meta["manifest_path"].rpartition("/")[2])
            for entry in records(files, meta["manifest_path"]):
                if entry["status"] != 2:
                    name = entry["data_file"]["file_path"].rpartition("/")[2]
                    assert name not in live, f"{name} is twice in snapshot {snapshot['snapshot-id']}"
                    live[name] = entry["data_file"]
    return Described(version, document, found, frozenset(named))


def names_in(files: FileIO, directory: str) -> set[str]:
    """The names of the files in a directory."""
    return {one.name for one in files.list(directory) if not one.is_directory}
