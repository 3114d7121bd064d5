"""The repository stays small, and holds no output of a run."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
MOST_BYTES = 2_000_000
"""Of all screenshots together."""


def test_pictures_of_screens_take_less_than_2_mb_together() -> None:
    files = [*(DOCS / "screenshots").iterdir(), DOCS / "assets" / "terminal.gif"]
    sizes = {file.name: file.stat().st_size for file in files}
    assert sizes
    assert sum(sizes.values()) < MOST_BYTES, "make them smaller: tests/browser/{screenshots,terminal}.py"


def test_every_view_has_a_screenshot_wide_and_on_a_phone_in_light_and_dark() -> None:
    names = {file.stem for file in (DOCS / "screenshots").iterdir()}
    views = {name.removesuffix("-dark").removesuffix("-light").removesuffix("-phone") for name in names}
    suffixes = ("-light", "-dark", "-phone-light", "-phone-dark")
    assert names == {f"{view}{suffix}" for view in views for suffix in suffixes}


def test_docs_contain_no_raw_results_of_benchmarks() -> None:
    kinds = {file.suffix for file in (DOCS / "benchmarks").rglob("*") if file.is_file()}
    assert kinds == {".md", ".png", ".xz"}
    assert "benchmarks/results/" in (ROOT / ".gitignore").read_text().splitlines()
