"""Errors on the wire: every one is ``application/problem+json`` (RFC 9457) and says what to do."""

from __future__ import annotations

import http
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from db.errors import (
    DatabaseDamaged,
    DiskFull,
    IdempotencyConflict,
    InvalidArchive,
    InvalidPage,
    InvalidTransition,
    NameTaken,
    NotFound,
    QuotaExceeded,
    Unavailable,
)
from service.logs.ids import known

MEDIA_TYPE = "application/problem+json"
REQUEST_ID = "X-Request-Id"
"""The header of a request's id, in the request and in its answer."""

RETRY_SECONDS = 2
"""After so long a request is worth another try while the database is away. Not tuned."""
_COMPLAINTS = 10
_LONGEST_COMPLAINT = 400
"""Characters."""
_TEXTS = {
    401: "The token is missing or wrong.",
    403: "The token lacks a right that the request needs.",
    404: "What the path names does not exist.",
    409: "The request conflicts with the present state.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    421: "The service does not answer for this host.",
    422: "The request is not valid; the detail says what to change.",
    429: "The user has too many requests open, or is over a limit. If trying again helps, Retry-After says when.",
    503: "The service is too busy, or no worker has joined. Retry-After says when to try again.",
}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems of a route for its OpenAPI schema."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _TEXTS[status], "content": content} for status in statuses}


RESPONSES = responses(401, 403, 404, 421, 422, 429, 503)
"""For the OpenAPI schema of every route under /api."""
BODY = responses(408, 413)
"""For those that take a body."""
CONFLICTS = responses(409)
"""For those that change what there is."""


def file_response(media_type: str) -> dict[int | str, dict[str, Any]]:
    """Return the file of a route's answer for its OpenAPI schema."""
    content = {"schema": {"type": "string", "format": "binary"}}
    return {200: {"description": "The file.", "content": {media_type: content}}}


class ProblemError(Exception):
    """A problem to answer with. ``kind`` names it for programs, ``detail`` tells people what to do."""

    def __init__(
        self, status: int, kind: str, detail: str, title: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.title = title or kind.replace("-", " ").capitalize()
        self.headers = headers


def answer(error: ProblemError) -> JSONResponse:
    content: dict[str, Any] = {
        "type": f"urn:loopwright:{error.kind}",
        "title": error.title,
        "status": error.status,
        # Of what a user sent, the detail may hold half a character, which UTF-8 has no bytes for.
        "detail": error.detail.encode("utf-8", "replace").decode(),
    }
    request_id = known().get("request")
    if error.status >= 500 and request_id is not None:
        content["request_id"] = request_id
    return JSONResponse(content, error.status, dict(error.headers or {}), MEDIA_TYPE)


def unavailable(error: Unavailable) -> ProblemError:
    """Return the problem for a request that the database cannot serve now."""
    kind = "disk-full" if isinstance(error, DiskFull) else "database-away"
    detail = f"{_shortened(str(error))}. Jobs wait for the database, and nothing is lost. Try again."
    return ProblemError(503, kind, detail, headers={"Retry-After": str(RETRY_SECONDS)})


def install(app: FastAPI) -> None:
    """Make the app answer every error with a problem."""
    app.add_exception_handler(ProblemError, lambda _, error: answer(error))
    app.add_exception_handler(RequestValidationError, _invalid)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _http)  # type: ignore[arg-type]
    app.add_exception_handler(NotFound, lambda _, error: answer(ProblemError(404, "not-found", f"There is {error}.")))
    app.add_exception_handler(
        InvalidPage,
        lambda _, error: answer(ProblemError(422, "invalid-page", f"{error}; start again without page_token")),
    )
    app.add_exception_handler(NameTaken, lambda _, error: answer(ProblemError(409, "name-taken", f"{error}.")))
    app.add_exception_handler(
        InvalidTransition,
        lambda _, error: answer(ProblemError(409, "not-possible", f"This change is not possible: {error}.")),
    )
    app.add_exception_handler(QuotaExceeded, _over_quota)  # type: ignore[arg-type]
    app.add_exception_handler(InvalidArchive, lambda _, error: answer(ProblemError(422, "invalid-archive", str(error))))
    app.add_exception_handler(
        IdempotencyConflict,
        lambda _, error: answer(ProblemError(409, "idempotency-conflict", f"{error}; choose a new Idempotency-Key")),
    )
    app.add_exception_handler(Unavailable, lambda _, error: answer(unavailable(error)))
    app.add_exception_handler(DatabaseDamaged, _damaged)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, _unexpected)


def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
    errors = error.errors()
    detail = "; ".join(_complaint(item) for item in errors[:_COMPLAINTS])
    more = len(errors) - _COMPLAINTS
    return answer(ProblemError(422, "invalid-request", f"{detail}; and {more} more" if more > 0 else detail))


def _complaint(item: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in item["loc"] if part != "body")
    return _shortened(f"{_shortened(where) or 'body'}: {item['msg']}")


def _shortened(text: str) -> str:
    """Names and values of the request are in it, however long they are."""
    return text if len(text) <= _LONGEST_COMPLAINT else f"{text[:_LONGEST_COMPLAINT]}…"


def _http(request: Request, error: HTTPException) -> JSONResponse:
    if error.status_code == 400 and error.__cause__ is not None:
        # FastAPI could not read the body: it is text in another encoding, say.
        reason = f"{type(error.__cause__).__name__}: {error.__cause__}"
        return answer(ProblemError(422, "invalid-request", f"body: not JSON in UTF-8 ({reason})"))
    phrase = http.HTTPStatus(error.status_code).phrase
    detail = str(error.detail) if error.detail else phrase
    if error.status_code == 405:
        detail = f"This path does not take {request.method}. /openapi.json lists the methods of each path."
    return answer(ProblemError(error.status_code, phrase.lower().replace(" ", "-"), detail, phrase, error.headers))


def _over_quota(_: Request, error: QuotaExceeded) -> JSONResponse:
    later = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    detail = f"{error} GET /api/v1/use shows your limits. An admin can change them."
    return answer(ProblemError(429, "quota-exceeded", detail, headers=later))


def _damaged(_: Request, error: DatabaseDamaged) -> JSONResponse:
    detail = f"{_shortened(str(error))}. Stop the service and restore the database from a backup."
    return answer(ProblemError(500, "database-damaged", detail))


def _unexpected(_: Request, error: Exception) -> JSONResponse:
    if isinstance(error, Unavailable):  # outside of what FastAPI catches: the audit log could not be written
        return answer(unavailable(error))
    request_id = known().get("request", "")
    detail = (
        f"{type(error).__name__}; the service's log has the details under request {request_id}. "
        "No change was stored in part."
    )
    # What answers here is outside of all middleware.
    return answer(ProblemError(500, "internal-error", detail, headers={REQUEST_ID: request_id}))
