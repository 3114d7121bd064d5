"""The documentation site: it builds from what the image copies, with the whole reference and without another host."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

import loopwright
from loopwright.cli import app
from service.api.metric_catalogue import METRICS
from service.problem_types import PROBLEM_TYPES, URN
from tests.unit.docs.documents import ROOT
from tests.unit.docs.site import build

SCHEMA: dict[str, Any] = json.loads((ROOT / "service/dashboard/openapi.json").read_text())


def text(page: Path) -> str:
    """The words of a page, without its markup."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def commands(command: Any, name: str) -> Iterator[str]:
    yield name
    if isinstance(command, TyperGroup):
        for part, below in command.commands.items():
            yield from commands(below, f"{name} {part}")


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


@pytest.mark.whole
def test_the_search_index_has_every_document(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text()
    documents = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    for document in documents:
        assert document.name == "README.html" or f'"location":"{document}"' in index, document


def test_every_exported_name_of_the_package_is_on_a_page(site: Path) -> None:
    anchors = {
        anchor for page in site.glob("reference/*.html") for anchor in re.findall(r'id="?([\w.]+)', page.read_text())
    }
    shown = {anchor.rpartition(".")[2] for anchor in anchors if anchor.startswith("loopwright.")}
    assert set(loopwright.__all__) - {"__version__"} <= shown
    assert {"backend", "refresh", "outcomes"} <= shown


def test_nothing_private_is_on_a_page_of_the_package(site: Path) -> None:
    for page in site.glob("reference/*.html"):
        found = re.findall(r'id="?(loopwright\.[\w.]+)', page.read_text())
        assert not [name for name in found if re.search(r"\._(?!_call__)", name)], page.name


def test_every_command_and_option_is_on_its_page(site: Path) -> None:
    page = text(site / "reference" / "commands.html")
    root = get_command(app)
    names = list(commands(root, "loopwright"))
    assert len(names) > 30
    for name in names:
        assert name in page
    assert "--idempotency-key" in page


def test_every_endpoint_is_on_the_page_of_its_tag(site: Path) -> None:
    for path, operations in SCHEMA["paths"].items():
        for method, operation in operations.items():
            page = text(site / "reference" / "rest" / f"{operation['tags'][0]}.html")
            assert f"{method.upper()} {path}" in page
            assert [each["name"] for each in operation.get("parameters", ()) if each["name"] not in page] == []


def test_every_object_is_described_once_with_its_fields(site: Path) -> None:
    pages = [page.read_text() for page in site.glob("reference/rest/*.html")]
    for name, model in SCHEMA["components"]["schemas"].items():
        described = [page for page in pages if re.search(rf'<h3 id="?{name.lower()}[" >]', page)]
        assert len(described) == (0 if name.startswith("Page_") or "enum" in model else 1), name
        assert all(f"<code>{field}</code>" in page for page in described for field in model.get("properties", ()))


def test_every_problem_is_on_its_page_by_status(site: Path) -> None:
    page = site / "reference" / "errors.html"
    for each in PROBLEM_TYPES:
        assert URN + each.kind in text(page)
        assert re.search(rf'id="?status-{each.status}[" >]', page.read_text())
    statuses = [each.status for each in PROBLEM_TYPES]
    assert statuses == sorted(statuses)


def test_every_metric_is_on_its_page(site: Path) -> None:
    page = text(site / "reference" / "metrics.html")
    assert [each.name for each in METRICS if each.name not in page] == []


@pytest.mark.whole
def test_broken_links_and_unlisted_documents_fail_the_build(site: Path, repository: Path) -> None:
    """The site that other tests read is left as it is."""
    page, unlisted = repository / "docs" / "settings.md", repository / "docs" / "guides" / "unlisted.md"
    before = page.read_text()
    broken = ("no-such-page.md", "rest.md#no-such-place", "../no-such-file.py", "/rest.md")
    page.write_text("\n".join([before, *(f"[x]({target})" for target in broken)]))
    unlisted.write_text("# Unlisted\n")
    try:
        done = build(repository, repository / "broken")
    finally:
        page.write_text(before)
        unlisted.unlink()
    assert done.returncode == 1
    assert [name for name in (*broken, "guides/unlisted.md") if name.lstrip("./") not in done.stderr] == []
    assert "Aborted with 5 warnings in strict mode" in done.stdout
