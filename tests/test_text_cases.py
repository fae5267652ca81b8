"""The runner of text cases: it reads, compares and rewrites files (tests/support/text_cases.py)."""

import pytest

from tests.support.text_cases import TextCase, check, read_cases

PAGE = "# Letters become large.\n\none letter\na\n----\nA\n\nno letter\n1\n----\n"


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "letters.txt"
    path.write_text(PAGE)
    return path


def silent(text):
    return text.upper() if text.isalpha() else ""


def test_cases_are_read_in_order(page):
    assert read_cases(page) == [TextCase(page, "one letter", "a", "A"), TextCase(page, "no letter", "1", "")]


def test_outputs_are_compared_exactly(page):
    for case in read_cases(page):
        check(case, silent)
    with pytest.raises(AssertionError):
        check(read_cases(page)[0], str)


def test_rewriting_changes_output_of_one_case_alone(page):
    check(read_cases(page)[0], lambda text: "two\nlines\n", rewrite=True)
    assert page.read_text() == PAGE.replace("\nA\n", "\ntwo\nlines\n")
    check(read_cases(page)[0], silent, rewrite=True)
    assert page.read_text() == PAGE


@pytest.mark.parametrize("bad", ["a name alone", "name\ninput without a separator", "one letter\nagain\n----"])
def test_block_that_is_not_a_separate_case_is_refused(page, bad):
    page.write_text(f"{PAGE}\n{bad}\n")
    with pytest.raises(ValueError, match=r"needs a name of its own"):
        read_cases(page)
