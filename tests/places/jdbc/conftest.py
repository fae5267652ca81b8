"""The databases of JDBC catalogs: one server of each kind for each module."""

import pytest

from tests.support.places.mariadb import mariadb
from tests.support.places.postgres import postgres


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def database(request):
    """The options of a database."""
    if request.param == "postgresql":
        with postgres() as url:
            yield {"uri": f"{url}/postgres", "jdbc.user": "postgres"}
    else:
        with mariadb() as url:
            yield {"uri": f"{url}/paimon", "jdbc.user": "paimon", "jdbc.password": "places"}
