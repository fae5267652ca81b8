"""Pages of the site in headless Chromium, opened as files without a network: both schemes, and an empty console."""

import pytest

from tests.docs.test_site import site
from tests.support.browser import DARK, HEIGHT, LIGHT, WIDTH, browser, has_colour, pixels

pytestmark = pytest.mark.more
__all__ = ["browser", "site"]  # fixtures
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"


@pytest.mark.parametrize("page", ["index.html", "guides/s3.html", "decisions/index.html"])
def test_page_shows_both_schemes_without_console_output(tmp_path, browser, site, page):
    for scheme, light in ((LIGHT, True), (DARK, False)):
        picture = tmp_path / "page.png"
        assert browser(site / page, picture, scheme, OFFLINE, "--virtual-time-budget=5000") == []
        image = pixels(picture)
        assert image.shape == (HEIGHT, WIDTH, 3)
        assert (image[HEIGHT // 2 :, WIDTH // 2 :].mean() > 128) == light
        assert has_colour(image, "#0b4a70", 2000)  # the head of the page: both styles were loaded


def test_search_answers_without_server(tmp_path, browser, site):
    """The word is in a page of its own, and the result has another look than no result."""
    pictures = []
    for number, query in enumerate(("?q=janino", "?q=xyzzyqwert")):
        picture = tmp_path / f"{number}.png"
        assert browser(site / "index.html", picture, LIGHT, OFFLINE, "--virtual-time-budget=20000", query=query) == []
        pictures.append(pixels(picture))
    assert (pictures[0] != pictures[1]).any(axis=2).sum() > 10_000
