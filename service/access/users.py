"""``/users``, ``/use`` and ``/audit``: users, their use of each limit, and the audit log."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from db.access.usage import NEW_USER
from db.access.views import Quota, UserView, UseView
from db.states import Scope
from loopwright import schemas
from service.bodies.route import ParsedRoute
from service.context import Ctx, Paging
from service.identity.rights import needs
from service.identity.visitor import Asking
from service.problems import BODY, CONFLICTS, ProblemError
from workers.walls.levels import Level

router = APIRouter(tags=["access"], route_class=ParsedRoute)


@router.get("/use")
@needs("submit")
def get_use(ctx: Ctx, visitor: Asking) -> schemas.Use:
    """Return the calling user's limits and use."""
    return _use(ctx.database.users.get(visitor.user), ctx.database.uses.of(visitor.user))


@router.get("/users")
@needs("administer")
def list_users(ctx: Ctx) -> schemas.Page[schemas.User]:
    """List all users, sorted by name."""
    return schemas.Page(items=[_user(view) for view in ctx.database.users.all()], next_page_token=None)


@router.post("/users", status_code=201, responses=BODY | CONFLICTS)
@needs("administer")
def make_user(ctx: Ctx, body: schemas.NewUser) -> schemas.User:
    """Create a user without tokens. ``POST /tokens`` creates the first token."""
    if ctx.sandbox.level is Level.NONE and ctx.settings.sandbox is None:
        raise ProblemError(
            409,
            "sandbox-required",
            "Submitted code runs without a sandbox on this machine, so each user could act as any other user. Make one "
            "possible (see docs/security.md), or start the service with LOOPWRIGHT_SANDBOX=off to accept this.",
        )
    quota = NEW_USER if body.quota is None else Quota(**body.quota.model_dump())
    return _user(ctx.database.users.create(body.name, Scope(body.role), quota))


@router.patch("/users/{name}", responses=BODY | CONFLICTS)
@needs("administer")
def change_user(ctx: Ctx, name: str, body: schemas.ChangeUser) -> schemas.User:
    """Change a user's role or limits, or disable a user. Disabling revokes the user's tokens; running jobs continue."""
    view = ctx.database.users.change(
        name,
        role=None if body.role is None else Scope(body.role),
        quota=None if body.quota is None else Quota(**body.quota.model_dump()),
        disabled=body.disabled,
    )
    ctx.identities.forget()
    return _user(view)


@router.get("/users/{name}/use")
@needs("administer")
def get_use_of(ctx: Ctx, name: str) -> schemas.Use:
    """Return a user's limits and use."""
    return _use(ctx.database.users.get(name), ctx.database.uses.of(name))


@router.get("/audit")
@needs("administer")
def list_audit(ctx: Ctx, paging: Paging) -> schemas.Page[schemas.AuditEntry]:
    """List the audit log, the newest entry first: requested changes, by whom, and whether they were refused."""
    page = ctx.database.audit.page(paging.size, paging.token)
    items = [
        schemas.AuditEntry(
            at=view.at,
            user=view.user_name,
            token_id=view.token_id,
            action=view.action,
            object=view.object,
            status=view.status,
            address=view.address,
        )
        for view in page.items
    ]
    return schemas.Page(items=items, next_page_token=page.next_page_token)


def _user(view: UserView) -> schemas.User:
    return schemas.User(
        name=view.name,
        role=view.role.value,
        quota=schemas.Quota(**asdict(view.quota)),
        created_at=view.created_at,
        disabled_at=view.disabled_at,
    )


def _use(user: UserView, use: UseView) -> schemas.Use:
    return schemas.Use(
        user=user.name,
        quota=schemas.Quota(**asdict(user.quota)),
        active_jobs=use.active_jobs,
        pending_trials=use.pending_trials,
        today=schemas.DayOfUse(**asdict(use.today)),
        days=[schemas.DayOfUse(**asdict(day)) for day in use.days],
    )
