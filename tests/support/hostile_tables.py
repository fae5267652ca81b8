"""Tables whose names try to become a part of what shows them."""

from pathlib import Path

import pyarrow as pa

from paimon_core import Schema, Table

HOSTILE = {
    "script": "<script>alert('x')</script>",
    "attribute": "\"><img src=x onerror='alert(1)'> ",
    "entity": "&lt;b&gt;&#34; {{ 7 * 7 }} {% raw %}",
    "style": "</style><style>*{display:none}",
    "direction": "\u202eabc\u2066 \u0634\u0631\u0637 \u05d0\u05d1",
    "control": "a\x07b\x1bc\u2028d",
    "long": "n" * 5_000,
}


def named_table(root: Path, name: str) -> Table:
    """A table that has this name everywhere: directory, columns, comments, partition, keys, tag, branch, consumer."""
    file = name.replace("/", "-").replace("\x00", "")[:60].strip() or "x"
    column = f"c{name}"
    schema = pa.schema(
        [
            pa.field("dt", pa.string(), nullable=False),
            pa.field("id", pa.string(), nullable=False),
            pa.field(column, pa.int32(), metadata={"comment": name}),
        ]
    )
    wish = Schema(schema, ["dt", "id"], ["dt"], {"bucket": "1", "snapshot.watermark-idle-timeout": "1 s"}, name)
    table = Table.create(str(root / file), wish)
    partition = f"p{name[:60]}"
    writer = table.writer()
    writer.write(pa.table({"dt": [partition], "id": [name], column: [1]}, schema=table.arrow_schema))
    table.committer(commit_user=name).commit(writer.prepare_commit())
    table.tags.create(f"t{file}")
    table.branches.create(f"b{file}", f"t{file}")
    table.consumers.reset(f"u{file}", 2)
    return table
