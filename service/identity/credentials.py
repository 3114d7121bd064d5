"""The credentials of a request: a token or a code in its Authorization header, or a browser's cookie."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass
from datetime import datetime
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.responses import Response

from service.identity.rights import READS
from service.problems import ProblemError


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token in the Authorization header."""

    secret: str


@dataclass(frozen=True, slots=True)
class Code:
    """A code that signs in once, in the Authorization header."""

    secret: str


@dataclass(frozen=True, slots=True)
class Cookie:
    """The token of a signed-in browser."""

    secret: str


Shown = Bearer | Code | Cookie


def read(headers: Headers, method: str) -> Shown | None:
    """Return the credentials of a request. Raise ProblemError (403) for a cookie that a page of another site sent."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return Bearer(given.strip())
    if scheme.lower() == "code":
        return Code(given.strip())
    secret = _cookie(headers)
    if secret is None:
        return None
    if not _is_own_page(headers, method):
        detail = "A page of another site sent this request with the cookie of the dashboard. Send a token instead."
        raise ProblemError(403, "cross-site", detail)
    return Cookie(secret)


def set_cookie(response: Response, headers: Headers, secret: str, expires_at: datetime, *, secure: bool) -> None:
    """Sign a browser in. Scripts cannot read the cookie, and other sites cannot send it."""
    name = _cookie_name(headers)
    response.set_cookie(name, secret, expires=expires_at, secure=secure, httponly=True, samesite="strict")


def clear_cookie(response: Response, headers: Headers) -> None:
    """Sign a browser out."""
    response.delete_cookie(_cookie_name(headers), httponly=True, samesite="strict")


def _cookie_name(headers: Headers) -> str:
    """Browsers do not tell the ports of a host apart: each service has a cookie of its own."""
    try:
        port = urllib.parse.urlsplit(f"//{headers.get('host', '')}").port
    except ValueError:  # there is no such port
        port = None
    return f"loopwright_{port or 'default'}"


def _cookie(headers: Headers) -> str | None:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(headers))
    except (CookieError, ValueError):
        return None
    return None if morsel is None else morsel.value


def _is_own_page(headers: Headers, method: str) -> bool:
    """Return whether the dashboard sent a request. SameSite=Strict lets pages of other ports of the same host send
    cookies."""
    site = headers.get("sec-fetch-site")
    if method in READS:
        return site in (None, "same-origin", "none")
    # Browsers leave Sec-Fetch-Site out where a page came by plain HTTP from another machine; Origin they always send.
    try:
        origin = urllib.parse.urlsplit(headers.get("origin", "")).netloc
    except ValueError:  # it is no address
        return False
    return site in (None, "same-origin") and origin == headers.get("host")
