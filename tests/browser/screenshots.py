"""Pictures of the dashboard for the README: ``python -m tests.browser.screenshots FOLDER``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, expect

from service.demo import MODEL, TRIALS
from tests.acceptance.harness import Service
from tests.browser.chromium import chromium
from tests.browser.conftest import token_of

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTH = 1200


def take(browser: Browser, service: Service, address: str, scheme: Literal["light", "dark"], file: Path) -> None:
    """The whole page at ``address``, once its data are there."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": 800}, color_scheme=scheme, reduced_motion="reduce", device_scale_factor=1.5
    )
    page = context.new_page()
    page.goto(f"{service.url}/?token={token_of(service)}")
    page.goto(f"{service.url}{address}")
    expect(page.get_by_text("certified").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=file, full_page=True)
    context.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, chromium() as browser:
        service = Service(Path(home))
        try:
            service.start()
            job = service.tuned(MODEL, name="two-layer perceptron", trials=TRIALS)
            for scheme in SCHEMES:
                file = folder / f"dashboard-job-{scheme}.png"
                take(browser, service, f"/jobs/{job['id']}", scheme, file)
                print(f"{file}: {file.stat().st_size / 1000:.0f} kB")
        finally:
            service.destroy()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
