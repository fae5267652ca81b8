"""Prose avoids the phrases of `tests.support.prose`; a list names files that still have some, and only shrinks."""

import pytest

from tests.support import prose


def test_prose_has_no_new_findings():
    allowed = prose.allowed()
    worse = {}
    for path in prose.files():
        findings = prose.findings_of(path)
        if len(findings) > allowed.get(str(path.relative_to(prose.ROOT)), 0):
            worse[str(path.relative_to(prose.ROOT))] = [str(finding) for finding in findings]
    assert not worse


def test_prose_list_names_only_files_with_findings():
    counts = {str(path.relative_to(prose.ROOT)): len(prose.findings_of(path)) for path in prose.files()}
    stale = {path: count for path, count in prose.allowed().items() if counts.get(path, 0) < count}
    assert not stale, "write the list again: python -m tests.support.prose --allow"


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ('def f(store):\n    """Read.\n\n    Args:\n        store: of the table.\n    """\n', "genitive argument"),
        ('"""What a statement has changed."""\n', "opening"),
        ("# nobody waits for it\n", "nobody"),
        ("def f():\n    raise ValueError('which rows? Give a filter')\n", "question"),
        ('"""' + "word " * 40 + '."""\n', "long"),
    ],
)
def test_prose_finding_is_reported(tmp_path, monkeypatch, source, rule):
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / "module.py").write_text(source)
    assert rule in [finding.rule for finding in prose.findings_of(tmp_path / "module.py")]


def test_prose_of_code_blocks_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("Text.\n\n```python\n# nobody\n```\n\n`whoever`\n")
    assert prose.findings_of(tmp_path / "page.md") == []
