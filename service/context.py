"""What every endpoint works with: settings, database and sandbox, made once an app."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.security import HTTPBearer

from db import Database
from service.problems import ProblemError
from service.sandbox import Sandbox
from service.settings import Settings

LIVE_SECONDS = 30.0
"""A worker that was not seen for so long offers nothing."""


@dataclass(frozen=True, slots=True)
class Context:
    settings: Settings
    database: Database
    sandbox: Sandbox
    token: str


def context(request: Request) -> Context:
    found: Context = request.app.state.context
    return found


_bearer = HTTPBearer(auto_error=False, description="The service's token.")


def authorised(request: Request, _: Annotated[object, Depends(_bearer)]) -> None:
    """Let a request pass that bears the token; otherwise 401."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    wanted = context(request).token
    if scheme.lower() != "bearer" or not secrets.compare_digest(given.strip().encode(), wanted.encode()):
        raise ProblemError(
            401,
            "unauthorised",
            "Send the service's token as 'Authorization: Bearer TOKEN'. It stands in the URL that the service printed "
            "and in the file 'token' of its data directory; 'loopwright login' saves it.",
            headers={"WWW-Authenticate": "Bearer"},
        )


@dataclass(frozen=True, slots=True)
class PageRequest:
    size: int
    token: str | None


def page_request(
    page_size: Annotated[int, Query(ge=1, le=500, description="Items on a page")] = 50,
    page_token: Annotated[str | None, Query(description="next_page_token of the page before")] = None,
) -> PageRequest:
    return PageRequest(page_size, page_token)


Ctx = Annotated[Context, Depends(context)]
Paging = Annotated[PageRequest, Depends(page_request)]
