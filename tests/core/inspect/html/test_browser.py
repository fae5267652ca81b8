"""Pages in a real browser, headless Chromium: the picture is drawn, in both themes, and no script runs.

A test is skipped, with the reason, where Chromium is missing or cannot start.
"""

import pytest

from paimon_core.inspect.html.render import summary_document, summary_html
from paimon_core.table import table_summary
from tests.support.browser import HEIGHT, WIDTH, browser, has_colour, pixels
from tests.support.hostile_tables import HOSTILE, named_table
from tests.support.tables import append_table, keyed_table, orders

pytestmark = pytest.mark.more
__all__ = ["browser"]  # a fixture


def tree(root):
    table = keyed_table(root / "t", bucket="2", write_only="true")
    for number in range(3):
        table.write(orders(*((key, "v", number) for key in range(number * 20, 60 + number * 20))))
    table.with_options({"write-only": "false"}).compact(full=True)
    table.write(orders(*((key, "v", 9) for key in range(30, 70))))
    table.tags.create("v1")
    return table


@pytest.mark.parametrize("kind", ["tree", "run_profile"])
def test_page_shows_both_themes_without_console_output(tmp_path, browser, kind):
    if kind == "tree":
        table = tree(tmp_path)
        colours = {"light": ("#e69f00", "#0072b2", "#009e73"), "dark": ("#e69f00", "#1f86c4", "#00a87b")}
    else:
        table = append_table(tmp_path / "t")
        for number in range(6):
            table.write(orders(*((key, "v", number) for key in range(50))))
        colours = {"light": ("#e69f00", "#0072b2"), "dark": ("#e69f00", "#1f86c4")}
    file = tmp_path / "page.html"
    file.write_text(summary_document(table_summary(table)), encoding="utf-8")
    for theme, number in (("light", 1), ("dark", 0)):
        picture = tmp_path / f"{theme}.png"
        assert browser(file, picture, f"--blink-settings=preferredColorScheme={number}") == []
        image = pixels(picture)
        assert image.shape == (HEIGHT, WIDTH, 3)
        assert (image[:, WIDTH // 2].mean() > 128) == (theme == "light")
        for colour in colours[theme]:
            assert has_colour(image, colour), (theme, colour)


@pytest.mark.parametrize("kind", ["script", "attribute", "style"])
def test_hostile_name_does_nothing_in_browser(tmp_path, browser, kind):
    name = HOSTILE[kind].replace("alert", "console.log").replace("src=x", "src=x:")
    embedded = summary_html(table_summary(named_table(tmp_path, name)))
    file, picture = tmp_path / "page.html", tmp_path / "page.png"
    file.write_text(
        f"<!doctype html><meta charset=utf-8>{embedded}", encoding="utf-8"
    )  # no policy forbids scripts here
    assert browser(file, picture) == []
    assert has_colour(pixels(picture), "#0072b2")  # no style of the name hides the page


def test_script_would_be_noticed(tmp_path, browser):
    file = tmp_path / "page.html"
    file.write_text("<!doctype html><script>console.log('noticed')</script>")
    (line,) = browser(file, tmp_path / "page.png")
    assert "noticed" in line


@pytest.mark.parametrize(
    ("theme", "dark"),
    [
        ('<body data-jp-theme-light="false">', True), ('<body data-jp-theme-light="true">', False),
        ('<body class="vscode-dark">', True), ('<body class="vscode-light">', False),
    ],
)  # fmt: skip
def test_theme_of_notebook_overrides_system_theme(tmp_path, browser, theme, dark):
    file, picture = tmp_path / "page.html", tmp_path / "page.png"
    embedded = summary_html(table_summary(tree(tmp_path)))
    file.write_text(f"<!doctype html><meta charset=utf-8>{theme}{embedded}</body>", encoding="utf-8")
    assert browser(file, picture, f"--blink-settings=preferredColorScheme={int(dark)}") == []
    assert (pixels(picture)[100, WIDTH // 2].mean() < 128) == dark
