"""Python code in README.md and docs/ does what the pages say: each page runs from top to bottom, in one namespace."""

import logging
import re
from contextlib import contextmanager

import pytest

from paimon_core import FileSystemCatalog, Table, options
from paimon_core.merge import MERGE_ENGINES
from paimon_spark import PaimonTable, option_names
from tests.support.markdown import PAGES, ROOT, compiled, named, python_blocks

pytestmark = pytest.mark.spark

WAREHOUSE = "/tmp/warehouse"
ELSEWHERE = {"docs/guides/connect.md"}
"""Pages whose code runs in tests/docs/test_shell.py, beside a server that the page starts."""
RUNNING = [
    page for page in PAGES if named(page) not in ELSEWHERE and not all(block.fragment for block in python_blocks(page))
]
QUICK = "README.md"
"""The page that runs in `make test`."""


@contextmanager
def object_store():
    """Start an S3 server; yield what replaces the texts of the page about S3."""
    server = pytest.importorskip("tests.support.s3_server", reason="the S3 server for tests is not installed")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line per request otherwise
    with server.s3_server() as (root, options):
        yield {
            "http://minio:9000": options["s3.endpoint"],
            "s3://lake": root,
            '"paimon-secret"': repr(options["s3.secret-key"]),
            '"s3.access-key": "paimon"': f'"s3.access-key": {options["s3.access-key"]!r}',
        }


STORES = {"gcs.md": "gcs", "azure.md": "azure", "oss.md": "oss"}
"""The pages that run with the server of a store, by the name of the store."""


@contextmanager
def store_of_page(page):
    """Start the server of a page's store; yield what replaces the texts of the page."""
    stores = pytest.importorskip("tests.support.places.stores", reason="the extras of stores are not installed")
    store = stores.BY_NAME[STORES[page.name]]
    with store.start() as port:
        replaced = {"gs://lake": f"{store.root}/lake", "abfss://lake@shop.dfs.core.windows.net": f"{store.root}/lake"}
        block = next(block for block in python_blocks(page) if "store = {" in block.code)
        text = re.search(r"store = \{.*?\}", block.code, re.DOTALL)[0]
        yield {**replaced, "oss://lake": f"{store.root}/lake", text: f"store = {dict(store.options(port))!r}"}


def marks_of(page):
    if page.name in STORES and page.name != "oss.md":
        return pytest.mark.places
    return () if named(page) == QUICK else pytest.mark.more


@pytest.mark.parametrize("page", [pytest.param(p, id=named(p), marks=marks_of(p)) for p in RUNNING])
def test_code_of_page_runs_and_prints_shown_output(spark, warehouse, capsys, page):
    if page.name == "s3.md":
        with object_store() as texts:
            run(page, capsys, texts)
    elif page.name in STORES:
        with store_of_page(page) as texts:
            run(page, capsys, texts)
    else:
        run(page, capsys, {WAREHOUSE: warehouse})


@pytest.mark.slow  # the pages run one by one before
def test_code_of_all_pages_runs_in_one_warehouse(spark, warehouse, capsys):
    """A reader tries one page after another, and no page fails because of the tables of another page."""
    for page in (page for page in RUNNING if page.name not in {"s3.md", *STORES}):
        run(page, capsys, {WAREHOUSE: warehouse}, outputs=False)
    (block,) = python_blocks(ROOT / "docs" / "guides" / "command.md")
    exec(block.code.replace(WAREHOUSE, warehouse), {})


def run(page, capsys, texts, outputs=True):
    """Run the code of a page with replaced texts; compare what it prints, unless `outputs` is False."""
    names = {"__name__": "__main__"}
    for block in (block for block in python_blocks(page) if not block.fragment):
        assert "/tmp/" not in block.code.replace(WAREHOUSE, ""), "examples write below one directory"
        code = block.code
        for shown, used in texts.items():
            code = code.replace(shown, used)
        exec(compiled(page, block, code), names)
        printed = capsys.readouterr().out
        if outputs and block.output is not None:
            assert printed.rstrip() == block.output.rstrip()


def test_readme_and_guide_are_among_pages_that_run():
    assert {"README.md", "docs/get-started/tour.md"} <= {named(page) for page in RUNNING}


def test_options_and_methods_that_list_of_features_names_exist():
    text = (ROOT / "docs" / "reference" / "features.md").read_text()
    classes = {"Table": Table, "PaimonTable": PaimonTable, "FileSystemCatalog": FileSystemCatalog}
    methods = re.findall(r"\b(Table|PaimonTable|FileSystemCatalog)\.(\w+)\(", text)
    assert methods
    assert not [f"{owner}.{method}" for owner, method in methods if not hasattr(classes[owner], method)]
    ours = {*option_names.READ_OPTIONS, *option_names.STREAM_OPTIONS, *option_names.WRITE_OPTIONS, *MERGE_ENGINES}
    names = set(re.findall(r"`([a-z]+(?:[.-][a-z<>-]+)+)`", text)) - {
        "snapshot-property.<name>",
        "full-compaction",
        "paimon-spark",
        "spark.read.changes",
    }
    assert names
    assert not [n for n in names - ours if not options.is_known(n.replace("<kind>", "bitmap"))]
