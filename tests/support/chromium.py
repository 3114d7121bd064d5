"""A real Chromium: the system's, or the one that Playwright installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    with sync_playwright() as playwright:
        # Its sandbox needs rights that containers do not give; it shows nothing but our own pages here.
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
