"""PyPaimon 2.1 and pypaimon_rust 0.4 in their own environment: reads JSON commands, answers what they took."""

import json
import sys
import time

import pyarrow as pa
from pypaimon import CatalogFactory
from pypaimon_rust.datafusion import PaimonCatalog

INPUTS: dict[str, pa.Table] = {}


def _input(path: str) -> pa.Table:
    if path not in INPUTS:
        with pa.memory_map(path) as source:
            INPUTS[path] = pa.ipc.open_file(source).read_all()
    return INPUTS[path]


def _read_python(warehouse, command):
    builder = CatalogFactory.create({"warehouse": warehouse}).get_table(command["table"]).new_read_builder()
    if command.get("columns"):
        builder = builder.with_projection(command["columns"])
    return builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows


def _read_rust(warehouse, command):
    builder = PaimonCatalog({"warehouse": warehouse}).get_table(command["table"]).new_read_builder()
    if command.get("columns"):
        builder = builder.with_projection(command["columns"])
    return sum(batch.num_rows for batch in builder.new_read().read_arrow(builder.new_scan().plan().splits()))


def _write_python(warehouse, command):
    data = _input(command["input"])
    table = CatalogFactory.create({"warehouse": warehouse}).get_table(command["table"])
    write = table.new_batch_write_builder().new_write()
    write.write_arrow(data)
    write.prepare_commit()
    write.close()
    return data.num_rows


def _write_rust(warehouse, command):
    data = _input(command["input"])
    write = PaimonCatalog({"warehouse": warehouse}).get_table(command["table"]).new_batch_write_builder().new_write()
    for batch in data.to_batches():
        write.write_arrow(batch)
    write.prepare_commit()
    write.close()
    return data.num_rows


def main(warehouse: str) -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        command = json.loads(line)
        if "input" in command:
            _input(command["input"])
        work = globals()[f"_{command['do']}_{'rust' if command.get('native') else 'python'}"]
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            rows = work(warehouse, command)
            answer = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "rows": rows}
        except BaseException as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
