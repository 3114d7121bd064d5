"""Users of the API under test, each with a token of their own."""

from __future__ import annotations

from tests.integration.service.conftest import Api


def sign_up(api: Api, name: str, role: str = "submit", **quota: float | None) -> Api:
    """Return a client of a new user."""
    api.post("/users", {"name": name, "role": role, "quota": quota}, status=201)
    made = api.post("/tokens", {"name": "test", "scope": role, "user": name}, status=201)
    return api.with_token(made["secret"])
