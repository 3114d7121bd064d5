"""The options of a compilation, beside those of the model, as one value."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from loopwright import schemas
from loopwright.jobs.targets import tvm_target
from loopwright.model import Tune
from loopwright.service_bests import ServiceBests

if TYPE_CHECKING:
    from loopwright.locking.lock import Lock


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The target of a model, and what its functions are compiled with."""

    target: Any = "auto"
    """As a user gives it."""
    params: dict[str, Any] | None = None
    """Values of parameters of ``main``, by name."""
    verify: bool = True
    """Whether the program is compared with the model."""
    lock: Lock | None = None
    """What it is compiled with in place of what the service knows."""
    tune: Tune | None = None
    """What is done about functions without a best."""

    @classmethod
    def of(
        cls,
        target: Any,
        params: dict[str, Any] | None = None,
        *,
        verify: bool = True,
        lock: str | os.PathLike[str] | Lock | None = None,
        tune: Tune | None = None,
    ) -> CompileOptions:
        """Return the options, with the lock of a file.

        Raises:
            ValueError: ``tune`` is unknown or given with a ``lock``; or the lock cannot be read, or is for another
                target.
            WrongCertificate: a best in the lock is not what its service signed.
        """
        if tune not in (None, *get_args(Tune)):
            raise ValueError(f"tune is {tune!r}; it may be 'instant', or None for certified bests alone")
        if tune is not None and lock is not None:
            raise ValueError("tune is for functions without a best, and a lock has all bests; leave out lock or tune")
        return cls(target, params, verify, None if lock is None else _lock_for(lock, target), tune)

    def ask(self, bests: ServiceBests, *, is_repeated: bool = True) -> Callable[[list[str]], schemas.LookupAnswer]:
        """Return what answers for workload hashes: the lock, or else the service (`ServiceBests.on_target`)."""
        if self.lock is not None:
            return self.lock.answer
        return bests.on_target(self.target, is_repeated=is_repeated, is_instant=self.tune is not None)


def _lock_for(lock: str | os.PathLike[str] | Lock, target: Any) -> Lock:
    """Return the lock, from its file if it is a path. Raise ValueError if it does not serve the target."""
    from loopwright.locking.lock import Lock

    found = Lock.of(lock)
    asked = tvm_target(target)
    if asked is not None:
        from loopwright.codegen.target import canonical_target, target_from

        locked_for = canonical_target(target_from(found.target))
        if canonical_target(asked) != locked_for:
            raise ValueError(f"the lock is for {locked_for}, and the target is {canonical_target(asked)}")
    return found
