"""The files around the code say things that exist: Spark settings, README, docs, Makefile."""

import itertools
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.support.markdown import PAGES, compiled, named, python_blocks

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent


def spark_settings():
    lines = (ROOT / "spark-conf" / "spark-defaults.conf").read_text().splitlines()
    settings = {}
    reason = ""
    for line in lines:
        if line.startswith("#"):
            reason = line
        elif not line.strip():
            reason = ""
        else:
            key, value = line.split()
            settings[key] = (value, reason)
    return settings


def test_every_spark_setting_has_reason():
    settings = spark_settings()
    assert "spark.sql.python.filterPushdown.enabled" not in settings  # readers take no filters
    assert not [key for key, (_, reason) in settings.items() if not reason]


def test_readme_names_no_missing_make_target():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = set(re.findall(r"`make ([a-z-]+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= used <= targets


def anchors(page):
    """Return the anchors of a page's headings, as Markdown makes them, and the ids of its links."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ids = re.findall(r'<a id="([^"]+)"', text)
    return {*ids, *(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings)}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_of_pages_exist(page):
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        path, _, anchor = link.partition("#")
        if "://" not in link:
            assert (page.parent / path).exists(), link
            assert not anchor or anchor in anchors(page.parent / path if path else page), link


PLACE_IN_DOCS = re.compile(r"\bdocs/[\w./-]*\w\.(?:md|svg|png|json)\b")


def test_paths_of_docs_in_code_exist():
    folders = ("paimon_core", "paimon_spark", "paimon_command", "benchmarks", "demo", "tests")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".java")]
    texts = {path: path.read_text() for path in (*files, *ROOT.glob("*.toml"), *ROOT.glob("*.yml")) if path.is_file()}
    missing = {
        str(path.relative_to(ROOT)): page
        for path, text in texts.items()
        for page in PLACE_IN_DOCS.findall(text)
        if not (ROOT / page).exists()
    }
    assert not missing


def test_folders_of_docs_are_parts_of_navigation():
    assert not {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}


FOR_NEWCOMERS = [
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/reference/features.md", "docs/get-started/tour.md"
]  # fmt: skip


@pytest.mark.parametrize("page", FOR_NEWCOMERS)
def test_pages_that_newcomers_read_have_short_lines(page):
    lines = (ROOT / page).read_text().splitlines()
    assert not [line for line in lines if len(line) > 120 and not line.startswith("|")]
    assert not [line for line in lines if len(line) > 140]


def test_readme_has_at_most_100_lines():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_tests_that_pages_name_exist(page):
    for path, name in re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", page.read_text()):
        assert (ROOT / path).exists(), path
        assert f"def {name}(" in (ROOT / path).read_text() or not name, f"{path}::{name}"


def source_of(path, page):
    """The file or folder that a page means by a path: from the root, from a package, or from its own folder."""
    places = (ROOT, ROOT / "paimon_core", ROOT / "paimon_spark", page.parent)
    return next((place / path for place in places if (place / path).exists()), None)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_code_that_pages_name_exists(page):
    text = page.read_text()
    folders = "paimon_core|paimon_spark|tests|benchmarks|demo|docs"
    for path in re.findall(rf"`([\w-]+/[\w./-]*\.(?:py|txt|java)|(?:{folders})/[\w./-]*)`", text):
        shown = f"`{path}`:\n\n```" in text  # a file that the reader writes
        assert shown or source_of(path, page), path
    for listed, path in re.findall(r"((?:`\w+`[,\s]+(?:(?:and|or)\s+)?)+)(?:in\s+|of\s+|\()`([\w/]+\.py)`", text):
        for name in re.findall(r"`(\w+)`", listed):
            assert re.search(rf"\b{name}\b", source_of(path, page).read_text()), f"{name} in {path}"


@pytest.mark.parametrize("page", ["architecture.md", "write.md", "read.md", "commit.md"])
def test_classes_that_pages_of_architecture_name_exist(page):
    code = "".join(path.read_text() for path in ROOT.glob("paimon_*/**/*.py"))
    names = set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)`", (ROOT / "docs" / "internals" / page).read_text()))
    assert not [name for name in names if not re.search(rf"\b{name}\b", code)]


def test_decisions_that_are_named_exist():
    numbers = {int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("0*.md")}
    texts = [*PAGES, *ROOT.glob("paimon_*/**/*.py"), *ROOT.glob("tests/**/*.py")]
    for text in texts:
        for listed in re.findall(r"\b[Dd]ecisions? (\d+(?:(?:, | and )\d+)*)", text.read_text()):
            assert {int(number) for number in re.findall(r"\d+", listed)} <= numbers, f"{text}: decision {listed}"


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=named)
def test_code_of_pages_compiles(page):
    for block in python_blocks(page):
        compiled(page, block)


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").rglob("*.svg")), ids=lambda path: path.name)
def test_pictures_are_well_formed(picture):
    assert ElementTree.parse(picture).getroot().get("viewBox")


def test_declared_licence_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.mark.parametrize(
    ("java", "message"),
    [(None, "Java 17 or 21 is missing"), ("echo 'openjdk version \"11.0.2\"' >&2", "Java 11 is too old")],
    ids=["missing", "old"],
)
def test_java_is_asked_for_in_one_line(tmp_path, java, message):
    (tmp_path / "bin").mkdir()
    if java:
        fake = tmp_path / "bin" / "java"
        fake.write_text(f"#!/bin/sh\n{java}\n")
        fake.chmod(0o755)
    environment = {"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    result = subprocess.run([ROOT / ".ci" / "java"], env=environment, capture_output=True, text=True)
    assert result.returncode == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert "apt-get install" in result.stderr


SPECIFICATIONS = {path.stem: path for path in sorted((ROOT / "docs" / "spec").glob("*.md"))}
NUMBER = r"[0-9]+(?:\.[0-9]+)*"
NUMBERS = rf"{NUMBER}(?:-{NUMBER})?(?:, {NUMBER}(?:-{NUMBER})?)*"
POINTER = re.compile(rf"\((?P<page>format|behaviour) (?P<numbers>{NUMBERS})\)")
LOOSE = re.compile(r"\b(?P<page>format|behaviour)(?:\.md)?[ \t]*\n?[ \t]*(?<=\s)§?[0-9]")
"""A pointer in any spelling, to be told when it is not a `POINTER`."""


def headings(path):
    """The numbers of the headings of a page, `7` and `7.4`."""
    return set(re.findall(rf"^#+ ({NUMBER}) ", path.read_text(), re.MULTILINE))


def pages_with_pointers():
    yield from ROOT.glob("*.md")
    for folder in ("paimon_core", "paimon_spark", "docs", "tests"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md") and path != Path(__file__):
                yield path


def test_pointers_lead_to_headings_of_specification():
    """Of pages that are there; every pointer has the one form that CONTRIBUTING.md names."""
    known = {page: headings(path) for page, path in SPECIFICATIONS.items()}
    assert {"7.4", "11", "9.5"} <= known["format"]
    actual, wrong = 0, []
    for path in pages_with_pointers():
        text = path.read_text()
        pointers = list(POINTER.finditer(text))
        actual += len(pointers)
        for pointer in pointers:
            numbers = set(re.findall(NUMBER, pointer["numbers"]))
            wrong += [f"{path}: {pointer[0]}"] if numbers - known.get(pointer["page"], numbers) else []
        starts = {pointer.start("page") for pointer in pointers}
        wrong += [f"{path}: {loose[0]!r}" for loose in LOOSE.finditer(text) if loose.start() not in starts]
    assert actual > 50
    assert not wrong


@pytest.mark.parametrize("page", SPECIFICATIONS)
def test_sections_of_specification_follow_one_another(page):
    """And every section number that a page names for itself is one of its headings."""
    text = SPECIFICATIONS[page].read_text()
    order = re.findall(rf"^#+ ({NUMBER}) ", text, re.MULTILINE)
    assert order == sorted(set(order), key=lambda number: [int(part) for part in number.split(".")])
    pointers = re.findall(rf"\(({NUMBERS})\)|\b(?:in|of|see|sections?|chapters?) ({NUMBER}\.[0-9]+)\b", text, re.I)
    numbers = re.findall(NUMBER, " ".join(itertools.chain.from_iterable(pointers)))
    releases = {"0.9", "1.0", "1.1", "1.2", "1.3", "1.4", "2.0", "2.1"}
    assert {n for n in numbers if "." in n} - releases <= set(order)


def test_recipes_of_store_format_and_procedure_are_complete():
    """Each recipe names the registry, an example and the tests."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    recipes = {part.partition("\n")[0]: part for part in text.split("\n## ")}
    for title, names in {
        "A store": ("fileio/stores.py", "fileio/s3.py", "fileio/test_stores.py", "support/s3_server.py"),
        "A file format": ("format/__init__.py", "format/test_registry.py", "conformance/kinds.py"),
        "A procedure": ("procedure_registry.py", "test_every_procedure.py", "sql/procedures.txt", "sql/call.md"),
    }.items():
        assert not [name for name in names if name not in recipes[title]], title


def test_glossary_is_sorted_and_names_classes_that_exist():
    words, unused = (ROOT / "docs" / "internals" / "glossary.md").read_text().split("## Words not used")
    code = "\n".join(path.read_text() for path in sorted(ROOT.glob("paimon_*/**/*.py")))
    defined = set(re.findall(r"^ *(?:class|def) (\w+)|^(\w+) *[:=]", code, re.MULTILINE))
    defined = {name for names in defined for name in names if name}
    for part in (words, unused):
        rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("| ")][1:]
        order = [re.sub("[^a-z0-9 ]", "", row[0].strip().lower()) for row in rows]
        assert order == sorted(set(order))
        assert not {name for row in rows for name in re.findall(r"`([A-Z]\w+)`", row[1])} - defined
    assert not {name for row in rows for name in re.findall(r"`([A-Z][a-z]\w+)`", row[0])} & defined


@pytest.mark.parametrize(
    ("title", "complaint"),
    [
        ("merge: -0.0 and 0.0 are two keys", ""),
        ("orphan files: a branch that is being created does not stop the removal", ""),
        ('Revert "merge: two keys"', ""),
        ("wip", "the title is not 'area: what it does'"),
        ("Merge: two keys", "the title is not 'area: what it does'"),
        ("merge: two keys.", "the title is not 'area: what it does'"),
        ("merge: " + "k" * 66, "the title has more than 72 characters"),
    ],
)
def test_title_of_commit_is_checked(tmp_path, title, complaint):
    (tmp_path / "message").write_text(f"{title}\n\nA body.\n# a comment of git\n")
    command = [ROOT / ".ci" / "titles", "--message", tmp_path / "message"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, complaint in result.stderr) == (1 if complaint else 0, True)


def test_titles_are_checked_on_branch_and_reported_on_main(tmp_path):
    (tmp_path / ".ci").mkdir()
    script = tmp_path / ".ci" / "titles"
    script.write_bytes((ROOT / ".ci" / "titles").read_bytes())
    script.chmod(0o755)
    user = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")

    def git(*arguments):
        subprocess.run(["git", *user, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def titles(*arguments):
        result = subprocess.run([script, *arguments], capture_output=True, text=True, check=False)
        return result.returncode, [name for name in ("wip", "Fix") if name in result.stderr]

    assert titles() == (0, [])  # no history
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "wip")
    assert titles() == (0, ["wip"])
    git("checkout", "-q", "-b", "branch")
    git("commit", "-q", "--allow-empty", "-m", "ci: titles are checked")
    assert titles() == (0, [])
    git("commit", "-q", "--allow-empty", "-m", "Fix")
    assert titles() == (1, ["Fix"])
    assert titles("HEAD~1") == (1, ["Fix"])


def test_hosted_ci_and_hooks_name_existing_targets():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    jobs = yaml.safe_load(workflow)["jobs"]
    named = {target.split()[0] for target in jobs["more"]["strategy"]["matrix"]["target"]}
    named |= set(re.findall(r"run: make ([a-z-]+)", workflow))
    assert {"check", "test", "test-more", "wheels"} <= named <= targets
    for path in re.findall(r"(\.ci/\w+)", workflow):
        assert (ROOT / path).exists(), path
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["id"] for hook in repo["hooks"]] == ["ruff", "ruff-format", "prose", "title"]


def test_changelog_has_one_line_for_each_change_by_subject():
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert releases
    for release in releases:
        title, *subjects = re.split(r"^### ", release, flags=re.MULTILINE)
        assert subjects, title
        for subject in subjects:
            lines = [line for line in subject.splitlines()[1:] if line]
            assert lines, subject
            assert not [line for line in lines if not line.startswith("- ") or not line.endswith(".")]
