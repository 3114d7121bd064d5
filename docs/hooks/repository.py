"""Let documents link to files of the repository outside of docs/: each becomes a page of the site.

A forge follows such links as they are. For the site, a document in Markdown outside of docs/ becomes a page as it is,
another file a page with its text, and a folder a page with its files, all under ``repository/``.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
FOLDER = "repository"
_FENCE = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_LANGUAGES = {".py": "python", ".cc": "cpp", ".yml": "yaml", ".yaml": "yaml", ".toml": "toml", ".json": "json"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file that a document links to, and for those that the added documents link to."""
    documents = [ROOT / "docs" / file.src_uri for file in files.documentation_pages()]
    for document in documents:
        for target in _targets(document):
            uri = page_of(target)
            if (target.is_relative_to(ROOT / "docs") and target.is_file()) or files.get_file_from_path(uri):
                continue
            page = File.generated(config, uri, content=_text(target))
            page.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(page)
            if target.suffix == ".md":
                documents.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links as a forge follows them into links between pages of the site."""
    document = source_of(page.file.src_uri)
    if document is None:
        return markdown
    here = posixpath.dirname(page.file.src_uri)

    def turned(link: re.Match[str]) -> str:
        target = _target(document, link[2])
        if target is None:
            return link[0]
        anchor = link[2].partition("#")[2]
        return f"{link[1]}{posixpath.relpath(page_of(target), here)}{'#' + anchor if anchor else ''}{link[3]}"

    return outside_of_fences(_LINK, turned, markdown)


def page_of(target: Path) -> str:
    """Return the address in the site's source of a file or folder of the repository."""
    if target.is_relative_to(ROOT / "docs") and target.is_file():
        return target.relative_to(ROOT / "docs").as_posix()
    name = target.relative_to(ROOT).as_posix()
    return f"{FOLDER}/{name}" if target.suffix == ".md" else f"{FOLDER}/{name}.md"


def source_of(uri: str) -> Path | None:
    """Return the file of the repository that a page was made from, or None if it was generated otherwise."""
    file = ROOT / uri.removeprefix(f"{FOLDER}/") if uri.startswith(f"{FOLDER}/") else ROOT / "docs" / uri
    return file if file.is_file() else None


def outside_of_fences(pattern: re.Pattern[str], replace: object, text: str) -> str:
    """Substitute outside of fenced blocks only."""
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [pattern.sub(replace, text[end : fence.start()]), fence[0]]  # type: ignore[call-overload]
        end = fence.end()
    return "".join([*parts, pattern.sub(replace, text[end:])])  # type: ignore[call-overload]


def _targets(document: Path) -> list[Path]:
    links = _LINK.findall(_FENCE.sub("", document.read_text()))
    return [target for _, link, _ in links if (target := _target(document, link)) is not None]


def _target(document: Path, link: str) -> Path | None:
    """Return what a link leads to, or None for other hosts, for places on the same page and for what does not exist."""
    name = unquote(link.partition("#")[0])
    if not name or re.match(r"[a-z]+:|/", name):
        return None
    target = (document.parent / name).resolve()
    return target if target.exists() and target.is_relative_to(ROOT) else None


def _shown(file: Path) -> str:
    if file.suffix != ".png":
        return f"`{file.name}`"
    here = posixpath.dirname(page_of(file.parent))
    return f"`{file.stem}`\n\n![{file.stem}]({posixpath.relpath(page_of(file), here)})"


def _text(target: Path) -> str:
    name = target.relative_to(ROOT).as_posix()
    if target.suffix == ".md":
        return target.read_text()
    if target.is_dir():
        return f"# {name}\n\n" + "\n\n".join(_shown(file) for file in sorted(target.iterdir()))
    language = _LANGUAGES.get(target.suffix, "text")
    return f"# {name}\n\n````{language}\n{target.read_text()}````\n"
