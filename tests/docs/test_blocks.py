"""Every code block of the docs is run by a test, is not code, or says in a comment why it is not run."""

import re

import pytest

from tests.support.markdown import PAGES, ROOT, fences, named

RUN = {
    ("docs/guides/command.md", "console"): "tests/command/test_tour.py",
    ("docs/guides/sql-command.md", "console"): "tests/command/test_sql.py",
    ("docs/guides/command.md", "python fragment"): "tests/command/test_tour.py",
    ("docs/reference/sql/statements.md", "sql"): "tests/spark/sql/test_page.py",
    ("docs/reference/sql/statements.md", "sql refused"): "tests/spark/sql/test_page.py",
    ("docs/reference/sql/call.md", "sql"): "tests/spark/sql/test_page.py",
    ("docs/reference/sql/changes.md", "sql"): "tests/spark/sql/test_change_feed.py",
    ("docs/reference/sql/insert.md", "sql"): "tests/spark/sql/test_page.py",
    ("docs/reference/sql/select.md", "sql"): "tests/spark/sql/test_page.py",
    ("docs/reference/sql/delete-update-merge.md", "sql"): "tests/spark/sql/test_page.py",
    ("docs/reference/system-tables.md", "sql"): "tests/spark/sql/test_page.py",
    ("docs/guides/cluster.md", "sh"): "tests/docs/test_shell.py",
    ("docs/guides/connect.md", "sh"): "tests/docs/test_shell.py",
    ("docs/guides/hdfs.md", "python fragment"): "tests/places/hdfs/test_hdfs_guide.py",
    ("docs/guides/hive-metastore.md", "python fragment"): "tests/places/hive/test_sql.py",
    ("docs/guides/hive-metastore.md", "sql"): "tests/places/hive/test_sql.py",
    **{("docs/guides/dbt.md", kind): "tests/spark/test_client_guides.py" for kind in ("yaml", "jinja")},
    **{("docs/guides/pipelines.md", kind): "tests/spark/test_client_guides.py" for kind in ("yaml", "python fragment")},
}
"""Blocks that are not Python and run in a test of their own."""
NO_CODE = {"", "text", "json"}
COMMAND = re.compile(
    r"^(\$ )?(\.venv/\S+|pip|make|python3?|git|docker|export|cd|paimon-spark|pytest|spark-\w+|\w+=\S+ \w+)\s",
    re.MULTILINE,
)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_block_runs_or_has_reason(page):
    for block in fences(page):
        if block.info in NO_CODE:
            assert not COMMAND.search(block.code), f"a command in a block that is no code: {block.code}"
            assert block.reason is None
        elif block.info != "sh" or (named(page), "sh") not in RUN:  # those run if they have no reason
            runs = block.info == "python" or (named(page), block.info) in RUN
            assert runs == (block.reason is None), f"{block.info}: {block.code[:200]}"


def test_tests_that_run_blocks_name_their_pages():
    for (page, _), test in RUN.items():
        assert page.rsplit("/", 1)[1] in (ROOT / test).read_text(), f"{test} does not name {page}"


@pytest.mark.parametrize(
    "line", ["pip install x", "$ make test", ".venv/bin/python -m x", "A=1 python x", "export A=1"]
)
def test_command_is_found(line):
    assert COMMAND.search(f"words\n{line}\n")


def test_messages_that_pages_explain_are_in_code():
    """In troubleshooting.md, in the section of messages of this engine."""
    section = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text().split("## By message")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    messages = [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]
    assert len(messages) >= 10
    code = "\n".join(path.read_text() for path in ROOT.glob("paimon_*/**/*.py"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)  # texts that go on in the next line
    assert not [m for m in messages if m not in code and m.removeprefix("needs ") not in code]
