"""Shrinking of random programs: what a failure does not need is removed, and the script runs the rest."""

import ast

from tests.random_sql.draw import draw
from tests.random_sql.play import ROWS, UNEXPECTED, Failure
from tests.random_sql.shrink import script, shrink


def test_equal_seeds_draw_equal_programs():
    assert draw("seed 1") == draw("seed 1")
    assert draw("seed 1") != draw("seed 2")


def test_only_the_steps_that_fail_remain():
    program = draw("seed", statements=6)

    def run(one):
        inserts = [step for step in one.steps if step.kind == "insert"]
        at = next((at for at, step in enumerate(one.steps) if step.kind == "query"), None)
        return None if at is None or not inserts else Failure(ROWS, at, "SELECT 1", "missing (1,)")

    smaller, failure = shrink(program, run(program), run)
    assert sorted(step.kind for step in smaller.steps) == ["insert", "query"]
    assert not smaller.settings
    assert not smaller.limits
    assert failure.at == len(smaller.steps) - 1


def test_other_errors_and_impossible_programs_are_no_smaller_failures():
    program = draw("seed", statements=6)

    def run(one):
        if len(one.steps) < 3:
            raise ValueError("a table is refused")
        error = "ArithmeticException DIVIDE_BY_ZERO: 1" if len(one.steps) > 4 else "ParseException SYNTAX: 2"
        return Failure(UNEXPECTED, len(one.steps) - 1, "SELECT 1", error)

    smaller, failure = shrink(program, run(program), run)
    assert len(smaller.steps) == 5
    assert failure.detail.startswith("ArithmeticException")


def test_script_has_every_statement():
    program = draw("script", statements=4)
    at = len(program.steps) - 1
    text = script(program, Failure(ROWS, at, "SELECT 1\n-- read as it is", "too many (1,)"))
    ast.parse(text)
    statements = sum(step.kind != "query" for step in program.steps)
    assert text.count("\nrun(") == len(program.tables) + statements + 1
    assert "# too many (1,)" in text
