"""Pictures of every view, in light and dark, wide and on a phone: ``python -m tests.browser.screenshots FOLDER``."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, expect

from service.demo import MODEL, TRIALS
from tests.support.chromium import chromium
from tests.support.service import Service
from tests.support.waiting import wait_for

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDE: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 780}
MOST_HEIGHT = 1300
"""Of a picture, in pixels of the page: enough to see what a view is."""
EXACT, OTHERS = 8, 56
"""Size of a picture's palette: its most frequent colours, so that backgrounds stay as they are, and others of its
range. The pictures of all views take 1.4 MB, where a palette of 256 takes 1.6 MB."""


@dataclass(frozen=True)
class View:
    name: str
    path: str
    complete: str
    """A text that is there once the view is."""
    first: str | None = None
    """The panel at which the picture begins; None: at the top of the page."""


def views(service: Service, job: dict[str, Any]) -> list[View]:
    task = max(job["tasks"], key=lambda each: each["trials"])
    workload, record = task["workload_hash"], task["record_id"]
    rows = service.get("/records", workload_hash=workload, sort="latency", page_size=500)["items"]
    # One of the middle: it differs from the best, and not in everything.
    other = rows[len(rows) // 2]["id"]
    return [
        View("overview", "/", "Recent bests"),
        View("jobs", "/jobs", f"{TRIALS} of {TRIALS}"),
        View("job", f"/jobs/{job['id']}", "certified"),
        View("bests", "/bests", "certified"),
        View("workload", f"/workloads/{workload}", "Rank correlation, by round"),
        View("schedule", f"/records/{record}", "After: scheduled"),
        View("assembly", f"/records/{record}?program=trace&assembly=1", "Assembly", "Machine code"),
        View("compare", f"/compare?a={record}&b={other}", "Left:"),
        View("fleet", "/fleet", "GFLOP/s"),
        View("submit", "/submit", "Preview"),
        View("access", "/access", "Audit log"),
    ]


def take(page: Page, service: Service, view: View, file: Path) -> None:
    """The view from its top or from its first panel, as far down as it goes or as a picture should."""
    page.goto(f"{service.url}{view.path}")
    expect(page.get_by_text(view.complete).first).to_be_visible()
    if view.name == "submit":
        page.get_by_role("textbox", name="Module").fill(MODEL.strip())
        page.get_by_label("Name").fill("two-layer perceptron")
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("table", name="What will be tuned")).to_be_visible()
    page.wait_for_load_state("networkidle")
    size = page.viewport_size
    assert size is not None
    top = 0
    if view.first is not None:
        panel = page.get_by_role("region", name=view.first)
        top = int(panel.evaluate("(panel) => panel.getBoundingClientRect().top + window.scrollY"))
    height = min(int(page.evaluate("document.documentElement.scrollHeight")) - top, MOST_HEIGHT)
    shot = page.screenshot(full_page=True, clip={"x": 0, "y": top, "width": size["width"], "height": height})
    with Image.open(io.BytesIO(shot)) as picture:
        save(picture, file)
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


def save(picture: Image.Image, file: Path) -> None:
    """Write a picture as PNG with a palette."""
    picture = picture.convert("RGB")
    counted = sorted(picture.getcolors(picture.width * picture.height) or [], reverse=True)
    exact = [channel for _, colour in counted[:EXACT] for channel in cast("tuple[int, ...]", colour)]
    # Maximum coverage keeps rare colours, which Pillow's median cut merges with their neighbours.
    others = picture.quantize(OTHERS, Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette(exact + others[: 3 * OTHERS])
    picture.quantize(palette=palette, dither=Image.Dither.NONE).save(file, format="PNG", optimize=True)


def pages(browser: Browser, service: Service) -> Iterator[tuple[str, Page]]:
    """A page for each kind of picture, by the end of the pictures' names."""
    for suffix, size in (("", WIDE), ("-phone", PHONE)):
        for scheme in SCHEMES:
            context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
            page = context.new_page()
            page.goto(service.login_url())
            expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
            yield f"{suffix}-{scheme}", page
            context.close()


def main(folder: Path, wanted: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, chromium() as browser, Service(Path(home)) as service:
        job = service.tuned(MODEL, name="two-layer perceptron", trials=TRIALS)
        service.tuned(MODEL, name="two-layer perceptron, once more", trials=TRIALS // 2, seed=1, force=True)
        running = service.submit(MODEL, name="a longer search", trials=50 * TRIALS, seed=2, force=True)
        wait_for("a worker that measures", lambda: service.items("/workers")[0]["slot"])
        for suffix, page in pages(browser, service):
            for view in views(service, job):
                if not wanted or view.name in wanted:
                    take(page, service, view, folder / f"{view.name}{suffix}.png")
        service.http.post(f"/api/v1/jobs/{running}/cancel")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
