"""Prose avoids the phrases of `tests.support.prose`; a list names files that still have some, and only shrinks."""

import pytest

from tests.support import prose


@pytest.mark.more
def test_prose_has_no_new_findings():
    allowed = prose.allowed()
    assert not {
        path: [str(finding) for finding in findings]
        for path, findings in prose.all_findings().items()
        if len(findings) > allowed.get(path, 0)
    }


@pytest.mark.more
def test_prose_list_has_no_higher_number_than_needed():
    findings = prose.all_findings()
    assert not {path: number for path, number in prose.allowed().items() if len(findings.get(path, ())) < number}, (
        "write the list again: python -m tests.support.prose --allow"
    )


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
