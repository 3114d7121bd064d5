"""The dashboard, and the documentation under ``/docs/``. Both consist of files that ``scripts/setup`` builds."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from service.access.headers import DOCUMENTATION, with_nonce
from service.problems import ProblemError

DASHBOARD = Path(__file__).parent / "dashboard" / "dist"
SITE = Path(__file__).parent / "documentation" / "site"


def serve(app: FastAPI) -> None:
    """Serve both. All paths without an endpoint serve the dashboard's page, whose views are client-side routes."""
    app.mount("/assets", StaticFiles(directory=DASHBOARD / "assets", check_dir=False), name="assets")
    not_found = app.router.default

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        # Where no route matches, rather than as a route that matches all: a wrong method must not look like a page.
        if scope["type"] == "http":
            await _page(Request(scope))(scope, receive, send)
        else:
            await not_found(scope, receive, send)

    app.router.default = page


def _page(request: Request) -> Response:
    path = request.url.path
    if path.startswith("/api/") or request.method not in ("GET", "HEAD"):
        raise ProblemError(404, "not-found", f"There is no endpoint {path}. /openapi.json lists all endpoints.")
    if path == DOCUMENTATION.rstrip("/"):
        return RedirectResponse(DOCUMENTATION)
    if path.startswith(DOCUMENTATION):
        return _documentation(path.removeprefix(DOCUMENTATION))
    path = path.lstrip("/")
    if path != "index.html" and (file := _file(DASHBOARD, path)):
        return FileResponse(file)
    index = DASHBOARD / "index.html"
    if not index.is_file():
        raise ProblemError(
            404, "no-dashboard", "The dashboard has not been built. An operator can build it with scripts/setup."
        )
    return HTMLResponse(with_nonce(index.read_text(), request.scope), headers={"Cache-Control": "no-store"})


def _documentation(path: str) -> Response:
    if not (SITE / "index.html").is_file():
        raise ProblemError(
            404,
            "no-documentation",
            "The documentation has not been built. An operator can build it with scripts/setup.",
        )
    if file := _file(SITE, path or "index.html"):
        return FileResponse(file)
    raise ProblemError(404, "not-found", f"The documentation has no page {path!r}. It begins at {DOCUMENTATION}.")


def _file(folder: Path, path: str) -> Path | None:
    """Return the file at a path inside of a folder, or None if there is none."""
    try:
        file = (folder / path).resolve()
        is_file = file.is_file()
    except (OSError, ValueError) as error:  # a name that no file can have
        raise ProblemError(404, "not-found", f"There is no page {path!r}.") from error
    return file if is_file and file.is_relative_to(folder) else None
