"""Random programs (tests/random_sql): statements leave the rows of the model, and queries of each kind find them."""

import pytest

from tests.random_sql.draw import draw
from tests.random_sql.play import Counts
from tests.random_sql.session import run_program
from tests.random_sql.shrink import script, shrink
from tests.spark.conftest import MODE
from tests.support.draws import rounds

pytestmark = [pytest.mark.spark, pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session")]


def play(spark, seed, statements):
    program = draw(seed, statements)
    failure = run_program(spark, program, Counts())
    if failure is not None:
        program, failure = shrink(program, failure, lambda one: run_program(spark, one, Counts()), most_runs=30)
        pytest.fail(script(program, failure))


@pytest.mark.parametrize(
    ("number", "statements"), [(0, 1), *(pytest.param(i, 3, marks=pytest.mark.more) for i in range(0, 44, 11))]
)
def test_program_has_rows_of_its_model(sql, seed, number, statements):
    play(sql.spark, f"{seed} {number}", statements)


@pytest.mark.minutes
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_short_programs_have_rows_of_their_models(sql, seed, first):
    for number in range(first, first + 20):
        play(sql.spark, f"{seed or 34} {number}", 1)


@pytest.mark.slow
def test_many_programs_have_rows_of_their_models(sql, seed):
    for number in range(rounds(1000, 60)):
        play(sql.spark, f"{seed} slow {number}", 12)
