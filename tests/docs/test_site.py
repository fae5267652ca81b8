"""The docs as a site: navigation, links, what each page shows, and nothing that a browser loads from elsewhere."""

import importlib.util
import inspect
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from html.parser import HTMLParser

import pytest
import yaml
from PIL import Image

import paimon_core
import paimon_spark
from tests.support.markdown import PAGES, ROOT, named

pytest.importorskip("mkdocs", reason="the extra docs is not installed")
SPEC = importlib.util.spec_from_file_location("api", ROOT / ".ci" / "api.py")
api = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(api)
DOCS = ROOT / "docs"
STYLE = (DOCS / "assets" / "site.css").read_text()
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.html",
    "CHANGELOG.md": "changelog.html",
    "tests/conformance/README.md": "conformance.html",
}
LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]* src=\"?(https?:)?//|<link[^>]* href=\"?(https?:)?//")
TAGS = ("h1", "h2", "h3", "h4", "li", "ul", "ol", "pre", "table", "tr", "td", "img", "a", "strong", "em")


def navigation(entry):
    """Yield the pages of the navigation, in their order."""
    match entry:
        case str():
            yield entry
        case dict():
            for part in entry.values():
                yield from navigation(part)
        case list():
            for part in entry:
                yield from navigation(part)


def test_navigation_has_every_page_once():
    nav = list(navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    outside = {place.replace(".html", ".md") for place in OUTSIDE.values()}
    generated = {f"{api.FOLDER}/{name}.md" for name in api.GROUPS}
    assert Counter(nav) == Counter(pages | outside | generated)


def test_api_reference_has_every_public_name_once():
    listed = [path for paths in api.objects().values() for path in paths]
    assert len(listed) == len(set(listed))
    names = {path.rpartition(".")[2] for path in listed}
    assert {*paimon_core.__all__, *paimon_spark.__all__} <= names
    for path in listed:
        module, _, name = path.rpartition(".")
        assert inspect.getdoc(getattr(importlib.import_module(module), name)), path


@pytest.mark.more
def test_api_reference_of_site_shows_every_object(site):
    for page, paths in api.objects().items():
        html = (site / api.FOLDER / f"{page}.html").read_text()
        assert not [path for path in paths if f'id="{path}"' not in html]
        assert not re.search(r":(meth|class|func):", html)


def test_list_of_decisions_agrees_with_folder():
    listed = re.findall(r"^- \[(.*?)\]\((.*?)\)$", (DOCS / "decisions" / "README.md").read_text(), re.MULTILINE)
    titles = [(page.read_text().splitlines()[0].removeprefix("# "), page.name) for page in DOCS.glob("decisions/0*.md")]
    assert listed == sorted(titles, key=lambda title: title[1])


@pytest.mark.parametrize("page", sorted(DOCS.glob("decisions/0*.md")), ids=lambda page: page.stem[:4])
def test_decision_file_is_named_after_its_title(page):
    number, _, title = page.read_text().splitlines()[0].removeprefix("# ").partition(". ")
    words = re.sub(r"[^a-z0-9 ]", "", title.lower()).replace(" ", "-")
    assert page.name == f"{int(number):04}-{words}.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="the extra docs is not installed")
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return place


class Elements(HTMLParser):
    """A counter of the elements of a page; for a page of the site, of its article without the theme's additions."""

    def __init__(self, inside_article):
        super().__init__()
        self.counts = Counter()
        self.urls = []
        self._counting = not inside_article

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.urls += [given[name] for name in ("href", "src", "srcset", "data", "action") if given.get(name)]
        if tag == "article":
            self._counting = True
        names = (given.get("class") or "").split()
        if self._counting and tag in TAGS and "headerlink" not in names:
            self.counts[tag] += 1

    def handle_endtag(self, tag):
        if tag == "article":
            self._counting = False


def elements(html, inside_article=False):
    parser = Elements(inside_article)
    parser.feed(html)
    return parser


def html_of(site, page):
    place = OUTSIDE.get(named(page)) or re.sub(r"(README)?\.md$", ".html", str(page.relative_to(DOCS)))
    return site / re.sub(r"(^|/)\.html$", r"\1index.html", place)


@pytest.mark.more
def test_site_pages_have_elements_of_their_markdown(site):
    """The same elements as CommonMark makes, with its tables: the site's Markdown differs in lists and code blocks."""
    markdown_it = pytest.importorskip("markdown_it")
    commonmark = markdown_it.MarkdownIt("commonmark").enable("table")
    pages = [*DOCS.rglob("*.md"), *(ROOT / page for page in OUTSIDE)]
    wrong = {}
    for page in pages:
        shown = elements(html_of(site, page).read_text(), inside_article=True).counts
        meant = elements(commonmark.render(page.read_text())).counts
        if shown != meant:
            wrong[named(page)] = {tag: (meant[tag], shown[tag]) for tag in TAGS if meant[tag] != shown[tag]}
    assert not wrong
    assert len(pages) > 50


@pytest.mark.more
def test_links_of_site_exist_and_load_nothing_external(site):
    linked = 0
    for page in site.rglob("*.html"):
        html = page.read_text()
        for url in elements(html).urls:
            path, _, anchor = url.partition("#")
            if "://" in path or path.startswith(("data:", "mailto:")) or page.name == "404.html":
                continue
            target = (page.parent / path) if path else page
            assert target.exists(), f"{page}: {url}"
            linked += 1
            if anchor and target.suffix == ".html":
                assert f'id="{anchor}"' in target.read_text(), f"{page}: {url}"
        assert not LOADED.search(html), page
    assert linked > 1000
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", style.read_text()), style


@pytest.mark.more
def test_search_finds_words_of_every_page(site):
    index = (site / "search" / "search_index.js").read_text()
    for page in (*DOCS.rglob("*.md"), *(ROOT / page for page in OUTSIDE)):
        assert f'"{html_of(site, page).relative_to(site)}' in index, page


@pytest.mark.more
def test_dead_link_stops_build(tmp_path):
    pytest.importorskip("material", reason="the extra docs is not installed")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Page\n\n[away](nowhere.md) [there](#nothing)\n")
    settings = (ROOT / "mkdocs.yml").read_text().split("nav:\n  - Home")[0]
    settings = settings.replace("hooks: [.ci/site.py, .ci/api.py]", "").replace("[assets/site.css]", "[]")
    (tmp_path / "mkdocs.yml").write_text(settings + "nav: [index.md]\n")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr
    assert "#nothing" in done.stderr


def test_style_of_site_is_one_file_and_pictures_are_small():
    for picture in DOCS.rglob("*.png"):
        assert picture.stat().st_size < 250_000, picture
    for picture in DOCS.rglob("*.svg"):
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_start_page_shows_timeline_of_picture():
    """The style crops the picture by its rows: another picture needs other rows."""
    with Image.open(DOCS / "assets" / "notebook.png") as picture:
        width, height = picture.size
    first, last, rows = map(int, re.findall(r"rows (\d+) to (\d+) of the (\d+) rows", STYLE)[0])
    assert rows == height, "choose the rows of the timeline again, in docs/assets/site.css"
    assert f"aspect-ratio: {width} / {last - first};" in STYLE
    assert f"object-position: 0 {100 * first / (height - last + first):.1f}%" in STYLE


def test_every_page_begins_with_one_title():
    for page in PAGES:
        if page.is_relative_to(DOCS):
            code = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
            text = code.sub("", page.read_text())
            assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1, page
            assert text.startswith("# "), page
