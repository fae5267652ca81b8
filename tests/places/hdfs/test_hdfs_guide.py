"""The code of docs/guides/hdfs.md prints what the page shows."""

import pytest
from pyspark.sql import SparkSession

from tests.support.markdown import ROOT, compiled, python_blocks

pytestmark = [pytest.mark.places, pytest.mark.spark]
PAGE = ROOT / "docs" / "guides" / "hdfs.md"


def test_code_of_guide(root, capsys):
    names = {"spark": SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()}
    blocks = python_blocks(PAGE)
    assert len(blocks) == 2
    for block in blocks:
        exec(compiled(PAGE, block, block.code.replace("hdfs://namenode:8020", root)), names)
        assert capsys.readouterr().out.rstrip() == block.output.rstrip()
