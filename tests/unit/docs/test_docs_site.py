"""The documentation site: it builds from what the image copies, without a warning, a broken link or another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.docs.documents import ROOT
from tests.unit.docs.site import build


def test_links_to_files_outside_of_docs_lead_to_pages_of_the_site(site: Path) -> None:
    assert "mm_relu" in (site / "repository/examples/mm_relu.py.html").read_text()
    assert 'href="repository/CONTRIBUTING.html"' in (site / "index.html").read_text()
    assert 'href="../../guides/models.html"' in (site / "repository/examples/index.html").read_text()


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        loaded = re.findall(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=\"?([^\" >]+)", page.read_text())
        assert loaded
        assert not [address for address in loaded if re.match(r"[a-z]+:", address) and not address.startswith("data:")]


def test_no_script_stands_in_a_page(site: Path) -> None:
    # The page for what is not found is for hosts of static files: the service has an answer of its own.
    for page in set(site.rglob("*.html")) - {site / "404.html"}:
        assert "<script>" not in page.read_text()
        for script in re.findall(r'<script src="?([^" >]+)', page.read_text()):
            assert (page.parent / script).exists()


def test_pages_with_a_diagram_bring_what_draws_it(site: Path) -> None:
    drawn = [page for page in site.rglob("*.html") if 'class="mermaid"' in page.read_text()]
    assert site / "repository" / "index.html" in drawn
    assert all("assets/javascripts/mermaid.js" in page.read_text() for page in drawn)


def test_the_search_index_has_every_document(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text()
    documents = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    for document in documents:
        assert document.name == "README.html" or f'"location":"{document}"' in index, document


@pytest.fixture
def broken(repository: Path) -> Iterator[Path]:
    page = repository / "docs" / "settings.md"
    text = page.read_text()
    yield page
    page.write_text(text)


@pytest.mark.parametrize(
    "text", ["[x](no-such-page.md)", "[x](rest.md#no-such-place)", "[x](../no-such-file.py)", "[x](/rest.md)"]
)
def test_a_broken_link_fails_the_build(repository: Path, broken: Path, text: str) -> None:
    broken.write_text(f"{broken.read_text()}\n{text}\n")
    done = build(repository)
    assert done.returncode == 1
    assert "Aborted with 1 warnings in strict mode" in done.stdout, done.stderr


def test_a_document_that_no_menu_lists_fails_the_build(repository: Path) -> None:
    page = repository / "docs" / "guides" / "unlisted.md"
    page.write_text("# Unlisted\n")
    try:
        assert "guides/unlisted.md" in build(repository).stderr
    finally:
        page.unlink()
