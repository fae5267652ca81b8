"""Notebooks in `demo/` run from top to bottom, and print the outputs that they store."""

import ast
import json

import pytest

from tests.spark.conftest import spark
from tests.support.markdown import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.more]
__all__ = ["spark"]  # a fixture
NOTEBOOKS = sorted((ROOT / "demo").glob("*.ipynb"))
WAREHOUSE = "/tmp/warehouse"


def execute(source, names, label):
    """Run a cell as a notebook does; return the value of its last line if that is an expression."""
    tree = ast.parse(source, label)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, label, "exec"), names)
    return eval(compile(ast.Expression(last.value), label, "eval"), names) if last else None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_prints_its_stored_outputs(spark, tmp_path, capsys, path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 5
    names = {"__name__": "__main__"}
    for number, cell in enumerate(cells, 1):
        value = execute("".join(cell["source"]).replace(WAREHOUSE, str(tmp_path)), names, f"{path.name}, cell {number}")
        printed = capsys.readouterr().out
        assert printed == "".join("".join(output["text"]) for output in cell["outputs"])
        assert value is None or value._repr_html_().startswith("<"), "only a table ends a cell without print"
