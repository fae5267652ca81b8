"""The HTML of pages: hostile names change nothing, the look stays inside, and notebooks never see an exception."""

import builtins
import re
import shutil
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from paimon_core import Table
from paimon_core.inspect.html import render
from paimon_core.inspect.html.render import summary_document, summary_html
from paimon_core.table import table_summary
from paimon_core.types.human_text import printable
from tests.support.hostile_tables import HOSTILE, named_table
from tests.support.markdown import ROOT
from tests.support.tables import append_table, keyed_table, orders


class Structure(HTMLParser):
    """The elements of a page with the names of their attributes, the targets of its links, and its ids."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements, self.text, self.links, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value for name, value in attrs if name == "href"]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.text.append(data)


def structure(text):
    parser = Structure()
    parser.feed(text)
    parser.close()
    return parser


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    table = named_table(tmp_path_factory.mktemp("plain"), "plain")
    return structure(summary_document(table_summary(table, rows=2))).elements


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_name_changes_no_element_of_page(tmp_path, plain, kind):
    name = HOSTILE[kind]
    page = table_summary(named_table(tmp_path, name), rows=2)
    assert page.errors == ()
    text = summary_document(page)
    actual = structure(text)
    assert actual.elements == plain
    assert not {tag for tag, _ in actual.elements} & {"script", "img", "iframe", "object", "link", "base"}
    assert {link.removeprefix("#") for link in actual.links} <= set(actual.ids)
    assert all(re.fullmatch("pmn-[0-9a-f]{10}-[a-z0-9-]+", name) for name in actual.ids)
    assert not [names for _, names in actual.elements if any(one.startswith("on") for one in names)]
    assert text.isprintable() or not {c for c in text if not c.isprintable()} - {"\n"}
    assert len(text) < 60_000
    shown = "".join(actual.text)
    assert printable(name[:20]) in shown.replace("…", "")


def test_error_with_hostile_text_is_escaped(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "v", 1)))
    (tmp_path / "t" / "snapshot" / "snapshot-1").write_text('{"version": "<script>alert(1)</script>"}')
    text = Table.open(table.path)._repr_html_()
    assert "&lt;script&gt;" in text
    assert "<script" not in text


def test_system_table_shows_its_first_rows(tmp_path):
    table = keyed_table(tmp_path / "t")
    for number in range(22):
        table.write(orders((number, "v", number)))
    actual = structure(table.system_table("snapshots")._repr_html_())
    assert sum(tag == "tr" for tag, _ in actual.elements) == 21
    assert "the first 20 rows; to_arrow() reads all" in "".join(actual.text)
    assert "1 row" in table.system_table("options")._repr_html_()
    assert table.system_table("audit_log")._repr_html_() is None  # it reads data files


def test_look_stays_inside_of_page(tmp_path):
    text = summary_html(table_summary(keyed_table(tmp_path / "t")))
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    flat = re.sub(r"@media[^{]*\{|\}\s*\}", "}", style)
    selectors = [one.strip() for rule in re.findall(r"([^{}]+)\{", flat) for one in re.split(r",(?![^(]*\))", rule)]
    assert len(selectors) > 50
    assert not [one for one in selectors if ".pmn" not in one]
    assert "url(" not in text
    assert "http" not in text.replace("Content-Security-Policy", "")


def test_pages_of_one_notebook_have_different_ids(tmp_path):
    pages = [structure(summary_html(table_summary(keyed_table(tmp_path / name)))) for name in "ab"]
    assert not set(pages[0].ids) & set(pages[1].ids)
    assert len(set(pages[0].ids)) == len(pages[0].ids) > 1


def test_every_kind_of_bar_has_look(tmp_path):
    style = (ROOT / "paimon_core" / "inspect" / "html" / "templates" / "style.css").read_text()
    modules = "".join(path.read_text() for path in (ROOT / "paimon_core" / "inspect" / "html").glob("*.py"))
    kinds = set(re.findall(r'(?:Bar\(|kind = )"(\w+)"', modules)) | {"l0", "mid", "deep", "del", "small", "full"}
    kinds |= {"append", "compact", "overwrite", "analyze", "other", "tag", "branch", "consumer", "good", "watch", "act"}
    assert not {kind for kind in kinds if f".{kind}" not in style}


def test_without_jinja_notebook_shows_repr(tmp_path, monkeypatch):
    table = append_table(tmp_path / "t")
    importing = builtins.__import__

    def refuse(name, *rest):
        if name.partition(".")[0] in ("jinja2", "markupsafe"):
            raise ImportError(name)
        return importing(name, *rest)

    render._environment.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", refuse)
        assert table._repr_html_() is None
        assert table.system_table("options")._repr_html_() is None
        with pytest.raises(ImportError, match=r"pyspark-paimon\[notebook\]"):
            summary_document(table_summary(table))
    assert "pmn" in table._repr_html_()


def test_error_of_page_itself_is_shown(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no <b>luck</b>")

    monkeypatch.setattr("paimon_core.table.stored_table.summary_of", fail)
    assert "RuntimeError: no &lt;b&gt;luck&lt;/b&gt;" in append_table(tmp_path / "t")._repr_html_()


def test_importing_engine_imports_no_template_engine():
    code = "import sys, paimon_core; print(sorted({'jinja2', 'markupsafe'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.more
def test_wheel_has_templates(tmp_path):
    copied = tmp_path / "source"
    for package in ("paimon_command", "paimon_core", "paimon_spark"):
        shutil.copytree(ROOT / package, copied / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE", "pyspark_paimon.py"):
        shutil.copy(ROOT / file, copied)
    command = [sys.executable, "-m", "uv", "build", "--wheel", "--out-dir", str(tmp_path), str(copied)]
    subprocess.run(command, capture_output=True, check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    held = {Path(name).name for name in zipfile.ZipFile(wheel).namelist() if "/html/templates/" in name}
    assert held == {path.name for path in (ROOT / "paimon_core" / "inspect" / "html" / "templates").iterdir()}
