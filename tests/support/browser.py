"""Headless Chromium: takes pictures of pages, and hears what they write to the console.

A test that asks for the fixture `browser` is skipped, with the reason, where Chromium is missing or cannot start; with
``CI=true`` it fails instead.
"""

import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

WIDTH, HEIGHT = 1100, 1200
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
LIGHT, DARK = (f"--blink-settings=preferredColorScheme={number}" for number in (1, 0))


def _missing(reason):
    """Skip the test, or fail it in CI."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        _missing(f"Chromium is missing: none of {', '.join(NAMES)} is on the PATH, and CHROMIUM is not set")
    home = tmp_path_factory.mktemp("chromium")

    def show(file, picture, *more, query=""):
        """Open a file, take its picture, and return the lines that the page wrote to the console."""
        assert file.exists()
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
            f"--user-data-dir={home}", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}", *more,
            file.as_uri() + query,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode or not picture.exists():
            _missing(f"Chromium does not start here: {done.stderr[-300:]}")
        return re.findall(r"CONSOLE.*", done.stderr)

    return show


def pixels(picture):
    """Return a picture as an array [row, column, channel]."""
    with Image.open(picture) as image:
        return np.asarray(image.convert("RGB"), np.int32)


def has_colour(image, colour, least=30):
    """Return True if enough pixels have about this colour, given as ``#rrggbb``."""
    expected = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return int((np.abs(image - expected).max(axis=2) <= 6).sum()) >= least
