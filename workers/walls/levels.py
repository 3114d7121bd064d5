"""The walls that this machine supports, and the operator's policy."""

from __future__ import annotations

import enum
import functools

from loopwright.codegen.kinds import SandboxLevel
from workers.walls import bubblewrap, landlock, syscalls

Level = SandboxLevel
"""`workers.walls.bubblewrap`, `workers.walls.landlock` and `workers.walls.syscalls` put up what it names."""


class Policy(enum.StrEnum):
    REQUIRE = "require"
    """Walls, or no work."""
    PREFER = "prefer"
    """The strongest walls there are, and a warning if there are none."""
    OFF = "off"


class NoWalls(Exception):
    """A sandbox is required, and this machine supports none; the message says why and what to do."""


def choose(policy: Policy) -> Level:
    """Return the strongest level that this machine supports. Raises NoWalls if the policy requires more."""
    if policy is Policy.OFF:
        return Level.NONE
    reasons = obstacles()
    for level in (Level.NAMESPACES, Level.LANDLOCK):
        if reasons[level] is None:
            return level
    if policy is Policy.REQUIRE:
        raise NoWalls(
            "submitted code must not run on this machine without a sandbox:  "
            + "; ".join(f"{level}: {reason}" for level, reason in reasons.items())
            + ". Allow user namespaces, or a kernel with Landlock (Linux 5.13) and libseccomp; or trust all users and "
            "set LOOPWRIGHT_SANDBOX=prefer"
        )
    return Level.NONE


@functools.cache
def obstacles() -> dict[Level, str | None]:
    """Return for each level why this machine lacks it, or None. The first call takes tens of milliseconds."""
    refusal = syscalls.obstacle()
    return {
        Level.NAMESPACES: refusal or bubblewrap.obstacle(),
        Level.LANDLOCK: refusal or landlock.obstacle(),
    }
