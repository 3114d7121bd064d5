"""Users and their tokens: what is stored of a secret, how long it holds, and who ends it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy

from db import InvalidTransition, NotFound
from db.access.usage import NEW_USER
from db.access.views import BearerView, Quota
from db.engine.connections import create_engine
from db.errors import NameTaken
from db.states import Scope
from loopwright.codegen.kinds import TokenKind
from tests.contract.db.conftest import World

HOUR = timedelta(hours=1)


def token(world: World, user: str = "owner", **fields: Any) -> tuple[str, str]:
    """The id and secret of a new token."""
    given = {"kind": TokenKind.TOKEN, "name": "ci", "scope": Scope.SUBMIT, "lifetime": None} | fields
    made, secret = world.db.tokens.create(user, **given)
    return made.id, secret


def valid(world: World, secret: str) -> BearerView | None:
    bearer = world.db.tokens.bearer(secret)
    return None if bearer is None or bearer.ended else bearer


def test_the_owner_is_there_from_the_start(world: World) -> None:
    (owner,) = world.db.users.all()
    assert (owner.name, owner.role, owner.quota) == ("owner", Scope.ADMIN, Quota())
    assert not world.db.users.several()


def test_a_users_name_is_taken_once(world: World) -> None:
    ada = world.db.users.create("ada", Scope.SUBMIT, NEW_USER)
    assert world.db.users.get("ada") == ada
    assert world.db.users.several()
    with pytest.raises(NameTaken, match="ada"):
        world.db.users.create("ada", Scope.ADMIN, Quota())
    with pytest.raises(NotFound):
        world.db.users.get("bob")


def test_a_users_role_and_limits_change(world: World) -> None:
    ada = world.db.users.create("ada", Scope.SUBMIT, NEW_USER)
    quota = Quota(active_jobs=1)
    assert world.db.users.change("ada", quota=quota) == replace(ada, quota=quota)
    assert world.db.users.change("ada", role=Scope.READ) == replace(ada, quota=quota, role=Scope.READ)
    with pytest.raises(NotFound):
        world.db.users.change("bob", role=Scope.ADMIN)
    for change in ({"role": Scope.READ}, {"disabled": True}):
        with pytest.raises(InvalidTransition, match="owner"):
            world.db.users.change("owner", **change)
    assert world.db.users.change("owner", quota=quota).quota == quota


def test_a_secret_is_not_stored(world: World, url: str) -> None:
    _, secret = token(world)
    engine = create_engine(url)
    with engine.begin() as connection:
        stored = connection.execute(sqlalchemy.text("SELECT * FROM tokens")).all()
    engine.dispose()
    assert secret not in repr(stored)
    assert secret[4:20] not in repr(stored)


def test_a_token_says_whose_it_is_and_when_it_was_used(world: World) -> None:
    world.db.users.create("ada", Scope.SUBMIT, NEW_USER)
    token_id, secret = token(world, "ada", lifetime=HOUR)
    expires_at = world.clock() + HOUR
    expected = BearerView("ada", token_id, TokenKind.TOKEN, Scope.SUBMIT, expires_at, ended=False)
    assert world.db.tokens.bearer(secret) == expected
    (listed,) = world.db.tokens.page("ada").items
    assert (listed.name, listed.used_at, listed.expires_at) == ("ci", world.clock(), expires_at)
    assert world.db.tokens.page("owner").items == ()
    assert world.db.tokens.page(None).items == (listed,)
    for wrong in ("", secret[:-1], f"{secret}x", "\x00", "\ud800"):
        assert world.db.tokens.bearer(wrong) is None


def test_a_token_does_no_more_than_its_user_may(world: World) -> None:
    world.db.users.create("ada", Scope.SUBMIT, NEW_USER)
    _, secret = token(world, "ada", scope=Scope.ADMIN)
    assert world.db.tokens.bearer(secret).scope is Scope.SUBMIT
    world.db.users.change("ada", role=Scope.READ)
    assert world.db.tokens.bearer(secret).scope is Scope.READ


def test_a_token_ends_by_time_by_revocation_and_with_its_user(world: World) -> None:
    world.db.users.create("ada", Scope.SUBMIT, NEW_USER)
    _, expiring = token(world, "ada", lifetime=HOUR)
    revoked_id, revoked = token(world, "ada")
    _, disabled = token(world, "ada")
    assert all(valid(world, secret) for secret in (expiring, revoked, disabled))
    world.clock.forward(3600)
    assert valid(world, expiring) is None
    with pytest.raises(NotFound):
        world.db.tokens.revoke(revoked_id, "owner")
    assert world.db.tokens.revoke(revoked_id, "ada").revoked_at == world.clock()
    assert valid(world, revoked) is None
    world.db.users.change("ada", disabled=True)
    assert valid(world, disabled) is None
    # Enabled again, a user needs new tokens.
    world.db.users.change("ada", disabled=False)
    assert valid(world, disabled) is None
    assert valid(world, token(world, "ada")[1]) is not None


def test_a_code_is_redeemed_once(world: World) -> None:
    _, code = token(world, kind=TokenKind.CODE, lifetime=HOUR)
    with ThreadPoolExecutor(8) as pool:
        redeemed = list(pool.map(lambda _: world.db.tokens.redeem(code), range(8)))
    (bearer,) = [each for each in redeemed if each is not None]
    assert bearer.user_name == "owner"
    _, late = token(world, kind=TokenKind.CODE, lifetime=HOUR)
    _, no_code = token(world)
    world.clock.forward(3600)
    assert world.db.tokens.redeem(late) is None
    assert world.db.tokens.redeem(no_code) is None
    assert valid(world, no_code) is not None
    assert {view.kind for view in world.db.tokens.page(None).items} == {TokenKind.TOKEN}


def test_sessions_that_ended_long_ago_are_forgotten(world: World) -> None:
    token(world, kind=TokenKind.SESSION, lifetime=HOUR)
    kept, _ = token(world, lifetime=HOUR)
    world.clock.forward(40 * 86400)
    newest, _ = token(world)
    assert [view.id for view in world.db.tokens.page(None).items] == [newest, kept]


def test_a_new_owners_token_replaces_that_of_the_same_service(world: World) -> None:
    for secret, service in (("one", "a:/data"), ("other", "b:/data"), ("one", "a:/data"), ("two", "a:/data")):
        world.db.tokens.put_owner(secret, service)
    assert valid(world, "one") is None
    assert [valid(world, secret).scope for secret in ("two", "other")] == [Scope.ADMIN, Scope.ADMIN]
    # The file may be put back.
    world.db.tokens.put_owner("one", "a:/data")
    assert (valid(world, "one") is None, valid(world, "two") is None) == (False, True)
    with pytest.raises(InvalidTransition, match="data directory"):
        world.db.tokens.revoke(world.db.tokens.bearer("one").token_id)


def test_the_audit_log_is_read_from_its_end_and_forgets(world: World) -> None:
    for number in range(5):
        world.db.audit.add(
            user_name="ada\x00", token_id="t", action="submit_job", object=f"/{number}", status=202, address="::1"
        )
        world.clock.forward(86400)
    first = world.db.audit.page(2)
    rest = world.db.audit.page(5, first.next_page_token)
    assert [view.object for view in (*first.items, *rest.items)] == ["/4", "/3", "/2", "/1", "/0"]
    assert first.items[0].user_name == "ada\ufffd"
    assert world.db.audit.forget(2.5) == 3
    assert [view.object for view in world.db.audit.page().items] == ["/4", "/3"]
