"""Tables whose metadata are edited, with every size and name that other metadata record of them kept right."""

import json
from pathlib import Path
from typing import Any

from paimon_core.table import Table
from tests.support.avro import read_avro, write_avro


def edit_json(path: Path | str, **values: object) -> None:
    """Replace values of a JSON file."""
    path = Path(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def edit_entries(table: Table, **values: Any) -> Table:
    """Replace values of every manifest entry, by their names in the file; return the table, opened again."""
    folder = Path(table.path) / "manifest"
    sizes: dict[str, int] = {}
    for path in folder.glob("manifest-*"):
        if not path.name.startswith("manifest-list"):
            schema, entries = read_avro(path.read_bytes())
            for entry in entries:
                for name, value in values.items():
                    (entry if name in entry else entry["_FILE"])[name] = value
            sizes[path.name] = path.write_bytes(write_avro(schema, entries))
    for path in folder.glob("manifest-list-*"):
        schema, metas = read_avro(path.read_bytes())
        metas = [{**meta, "_FILE_SIZE": sizes[meta["_FILE_NAME"]]} for meta in metas]
        sizes[path.name] = path.write_bytes(write_avro(schema, metas))
    for path in (Path(table.path) / "snapshot").glob("snapshot-*"):
        snapshot = json.loads(path.read_text())
        lists = ("baseManifestList", "deltaManifestList", "changelogManifestList")
        edit_json(path, **{f"{key}Size": sizes[snapshot[key]] for key in lists if key in snapshot})
    return Table.open(table.path)
