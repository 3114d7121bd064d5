"""All problem types of the API: when each occurs, and what the caller can do. The reference lists them."""

from __future__ import annotations

from dataclasses import dataclass

URN = "urn:loopwright:"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """``kind`` follows `URN` in the ``type`` of an answer; ``when`` and ``advice`` are Markdown."""

    kind: str
    status: int
    when: str
    advice: str


_AGAIN = "Send the request again after `Retry-After`."

PROBLEM_TYPES = (
    ProblemType(
        "unauthorised",
        401,
        "The request has no token, or one that the service does not know.",
        "Send `Authorization: Bearer TOKEN`; `loopwright login` saves a token for the client.",
    ),
    ProblemType("token-ended", 401, "The token has expired or was revoked.", "Use another token, or sign in again."),
    ProblemType("link-expired", 401, "The guest link has expired or was revoked.", "Ask for a new one."),
    ProblemType(
        "code-ended",
        401,
        "The code that signs a browser in was used before, or is too old.",
        "`loopwright dashboard` prints a new address.",
    ),
    ProblemType(
        "not-allowed",
        403,
        "The token lacks the right that the endpoint needs, or the request asks for more than the user may have: "
        "a priority over 0, tokens of others, a token of a wider scope.",
        "Use a token of a wider scope, or ask an admin.",
    ),
    ProblemType("not-yours", 403, "The job belongs to another user.", "Ask its owner or an admin."),
    ProblemType(
        "guests-only-read",
        403,
        "A guest link was used for a request that changes something, or for one that guests may not read.",
        "Sign in with a token of your own.",
    ),
    ProblemType(
        "no-guests", 403, "The service admits no guests.", "An operator can start it with `LOOPWRIGHT_GUESTS=true`."
    ),
    ProblemType(
        "cross-site",
        403,
        "A page of another site sent the request with the cookie of a signed-in browser.",
        "Send a token instead of the cookie.",
    ),
    ProblemType(
        "not-found",
        404,
        "There is no such job, record, workload, user, token or path, or the caller may not see it.",
        "Check the id or path.",
    ),
    ProblemType(
        "no-dashboard", 404, "The dashboard was requested, but has not been built.", "An operator runs `scripts/setup`."
    ),
    ProblemType(
        "no-documentation",
        404,
        "The documentation was requested, but has not been built.",
        "An operator runs `scripts/setup`.",
    ),
    ProblemType(
        "method-not-allowed",
        405,
        "The path exists, but not with this method.",
        "See `/openapi.json`, or the [reference](README.md).",
    ),
    ProblemType(
        "body-too-slow",
        408,
        "No byte of the body arrived for 30 s, or the body took longer than one minute plus one second per 16 KiB.",
        "Send the request again over a faster connection.",
    ),
    ProblemType(
        "idempotency-conflict",
        409,
        "The `Idempotency-Key` was used before with another body.",
        "Choose a new key.",
    ),
    ProblemType("name-taken", 409, "A user of this name exists already.", "Choose another name."),
    ProblemType(
        "not-possible",
        409,
        "The change does not fit the present state, such as revoking the owner's token.",
        "The detail says why.",
    ),
    ProblemType(
        "no-module",
        409,
        "The job raced bests again and has no module that could be returned or submitted again.",
        "Start another recheck with `POST /rechecks`.",
    ),
    ProblemType(
        "sandbox-required",
        409,
        "A second user was requested, but submitted code runs without a [sandbox](../security.md#sandbox) here.",
        "Make a sandbox possible, or set `LOOPWRIGHT_SANDBOX=off` to accept that each user could act as any other.",
    ),
    ProblemType(
        "body-too-large",
        413,
        "The body is larger than `LOOPWRIGHT_MAX_BODY_BYTES`.",
        "Submit the module without its weights, or import records in parts.",
    ),
    ProblemType(
        "unknown-host",
        421,
        "The service does not answer for the host that the request names.",
        "Use an address that the service knows, or add the host to `LOOPWRIGHT_ALLOWED_HOSTS`.",
    ),
    ProblemType(
        "invalid-request",
        422,
        "The body is not JSON, or a field or parameter has a wrong type or is out of bounds.",
        "The detail names each field and what is wrong with it.",
    ),
    ProblemType(
        "invalid-page", 422, "The `page_token` does not belong to this list.", "Start again without `page_token`."
    ),
    ProblemType(
        "too-complex",
        422,
        "The JSON of the body has more than 200,000 values, 25,000 names in objects or 64 levels of nesting.",
        "Send less in one request.",
    ),
    ProblemType(
        "too-expensive",
        422,
        "Reading the submitted module, space or records took too much time or memory, and was stopped.",
        "Send fewer functions or records at once, or smaller ones.",
    ),
    ProblemType(
        "invalid-module",
        422,
        "The module cannot be read, or contains a part that is not allowed.",
        "The detail says which part, and why.",
    ),
    ProblemType(
        "invalid-target", 422, "TVM does not know the target.", "Choose one that `GET /targets` lists, or `auto`."
    ),
    ProblemType(
        "invalid-space",
        422,
        "The traces of `space` cannot be applied to the module.",
        "The detail says which trace, and why.",
    ),
    ProblemType(
        "unsupported-version",
        422,
        "The module or records were written by a version of TVM that the service cannot read.",
        "Write them with the version that `GET /version` names.",
    ),
    ProblemType(
        "invalid-archive",
        422,
        "The archive of an import is not a `.tar` with TVM's JSON pair, or cannot be read.",
        "The detail says what is missing.",
    ),
    ProblemType(
        "not-compiled",
        422,
        "TVM cannot compile the program of the record. This happens with imported records.",
        "Compile the program on a machine of the record's target.",
    ),
    ProblemType(
        "target-not-offered",
        422,
        "No live worker runs code for the target.",
        "Choose one that `GET /targets` lists, or start such a worker.",
    ),
    ProblemType(
        "labels-not-offered",
        422,
        "No live worker has all of the labels.",
        "Choose labels that `GET /workers` lists.",
    ),
    ProblemType("same-target", 422, "Two of the `targets` are the same on this fleet.", "Leave one of them out."),
    ProblemType(
        "no-reference",
        422,
        "The reference that `gate` names does not exist, or the job cannot race with it.",
        "Give a job that succeeded, on the same device class.",
    ),
    ProblemType(
        "nothing-to-ablate",
        422,
        "The record is the unscheduled program, which makes no decisions.",
        "Give a record of a schedule.",
    ),
    ProblemType(
        "nothing-to-recheck",
        422,
        "None of the workloads has a best, other than its baseline, on machines of the target.",
        "Submit a job for them.",
    ),
    ProblemType(
        "too-many-requests",
        429,
        "The user has too many requests open: event streams, large bodies, or requests that read modules.",
        _AGAIN,
    ),
    ProblemType(
        "quota-exceeded",
        429,
        "The submission is over a [limit](../guides/users.md#limits) of the user.",
        "`GET /use` shows the limits. Wait until the next day (UTC), or ask an admin.",
    ),
    ProblemType(
        "internal-error",
        500,
        "A fault of the service.",
        "Give the `request_id` to an operator. The service's log contains the reason under this id.",
    ),
    ProblemType(
        "service-fault",
        500,
        "A fault of the service, while it read or rendered a program.",
        "Give the reference in the detail to an operator. The service's log contains the reason under it.",
    ),
    ProblemType(
        "too-slow",
        500,
        "Rendering a stored program or applying stored schedules took more than 30 s, and was stopped.",
        "Try again when the service is less busy.",
    ),
    ProblemType(
        "database-damaged",
        500,
        "The database is damaged.",
        "An operator restores a backup, see [recovery](../guides/recovery.md).",
    ),
    ProblemType(
        "busy",
        503,
        "The service reads too many modules at once, or has too many requests open. Nothing was stored.",
        _AGAIN,
    ),
    ProblemType("interrupted", 503, "The process that worked on the request was killed. Nothing was stored.", _AGAIN),
    ProblemType(
        "caller-left",
        503,
        "The connection was closed before the answer was ready. Only the audit log and metrics show this.",
        "Wait longer for answers.",
    ),
    ProblemType("no-worker", 503, "No worker has joined yet.", "Wait until `GET /readyz` answers 200."),
    ProblemType(
        "not-ready",
        503,
        "`GET /readyz`: no worker has joined yet.",
        "Wait. If no worker joins, the controller's log says why.",
    ),
    ProblemType(
        "database-away",
        503,
        "The database does not answer. Whether a change was stored is not known.",
        f"{_AGAIN} Send a job with the same `Idempotency-Key`.",
    ),
    ProblemType("disk-full", 503, "The disk of the database is full. Nothing was stored.", _AGAIN),
)
"""In the order of their statuses."""
