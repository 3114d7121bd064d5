"""Who asks, for tests of what lies behind the middleware that finds that out."""

from __future__ import annotations

from db.access.views import BearerView
from db.states import Scope
from loopwright.codegen.kinds import TokenKind
from service.identity.visitor import Visitor


def visitor(user: str) -> Visitor:
    """A user with a token that submits."""
    bearer = BearerView(user, f"token of {user}", TokenKind.TOKEN, Scope.SUBMIT, None, ended=False)
    return Visitor(bearer, "secret", ("read", "submit"))
