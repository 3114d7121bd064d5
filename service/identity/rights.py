"""The right that each endpoint needs, and the rights of each scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fastapi.routing import APIRoute, APIRouter

from db.states import Scope
from loopwright.schemas import Right

Endpoint = TypeVar("Endpoint", bound=Callable[..., object])

READS = ("GET", "HEAD")
_SUBMIT: tuple[Right, ...] = ("read", "submit", "cancel", "import")
_RIGHTS: dict[Scope, tuple[Right, ...]] = {
    Scope.READ: ("read",),
    Scope.SUBMIT: _SUBMIT,
    Scope.ADMIN: (*_SUBMIT, "readmit", "administer"),
}
_NEEDED: dict[Callable[..., object], Right] = {}


def rights(scope: Scope, guests: bool) -> list[Right]:
    """Return the rights of a scope; ``guests``: whether the service lets its users invite guests."""
    invite: list[Right] = ["invite"] if guests and scope is not Scope.READ else []
    return [*_RIGHTS[scope], *invite]


def needs(right: Right) -> Callable[[Endpoint], Endpoint]:
    """Declare the right that an endpoint needs; a GET that declares none needs ``read``."""

    def declare(endpoint: Endpoint) -> Endpoint:
        _NEEDED[endpoint] = right
        return endpoint

    return declare


def needed(endpoint: Callable[..., object], method: str) -> Right:
    """Return the right that a request needs. Raise KeyError for an endpoint that changes things and declares none."""
    return _NEEDED.get(endpoint, "read") if method in READS else _NEEDED[endpoint]


def declare(router: APIRouter) -> None:
    """Have the OpenAPI schema name the right that each endpoint needs, as ``x-right``.

    Raises:
        TypeError: An endpoint changes something and declares no right.
    """
    for route in router.routes:
        if not isinstance(route, APIRoute):
            continue
        method = next(iter(route.methods or READS))
        try:
            right = needed(route.endpoint, method)
        except KeyError:
            raise TypeError(f"{route.name} declares no right; see service.identity.rights.needs") from None
        route.openapi_extra = {"x-right": right}
