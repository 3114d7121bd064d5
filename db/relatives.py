"""Relatives of a workload: others of its family, which differ in their shapes, with trials whose traces it can try."""

from __future__ import annotations

import itertools
import math
import operator
from bisect import insort
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Integer, Select, bindparam, exists, func, select
from sqlalchemy.orm import Session, aliased

from db.engine.statements import cache_statements
from db.models import Trial, Workload
from loopwright.codegen.versions import CODEGEN_VERSION

PER_RELATIVE = 16
"""Traces of one workload. Not tuned."""
_DIGITS = 9
"""Of distances: those that are equal but for rounding are equal."""
_ROUNDING = 2 * 10.0**-_DIGITS
"""Of sums of logarithms, and of distances."""
_MOST_KNOWN = 100_000
"""Workloads whose extents are kept, of some hundred bytes each. Not tuned."""
_AT_ONCE = 500
"""Workloads that are read by one statement. Not tuned."""
_SEPARATOR = "\n"
"""Of hashes in one text: a row for each would take this process longer than the server."""


class Extents:
    """The logarithms of the extents of workloads, and their sums. They never change, and their JSON is slow to read."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, tuple[float, ...]]] = {}

    def of(self, session: Session, hashes: Sequence[str]) -> list[tuple[float, tuple[float, ...]]]:
        """Return those of some workloads, in their order. Read the ones that were not read before."""
        known = self._known
        if unknown := [each for each in hashes if each not in known]:
            if len(known) + len(unknown) > _MOST_KNOWN:
                known = self._known = {}
                unknown = list(hashes)
            for start in range(0, len(unknown), _AT_ONCE):
                for workload_hash, args in session.execute(_args(), {"hashes": unknown[start : start + _AT_ONCE]}):
                    extents = itertools.chain.from_iterable(shape for shape, *_ in args)
                    logarithms = tuple(math.log(max(extent, 1)) for extent in extents)
                    known[workload_hash] = math.fsum(logarithms), logarithms
        return [known[each] for each in hashes]


def relatives_traces(
    session: Session, extents: Extents, workload_hash: str, device_class_id: str, most: int
) -> list[str]:
    """Return traces of the fastest trials of relatives of a workload on a device class (`db.trials.Trials.relatives`).

    Whether the nearest have such trials is found with the traces: to look for all of a large family takes longer.
    """
    facts = {"workload_hash": workload_hash, "device_class_id": device_class_id}
    family = _hashes(session, _family(teaching=False), facts)
    if not family:
        return []
    near = nearest(session, extents, workload_hash, family, most + most // 2)
    fastest = dict(session.execute(_fastest_trace(), {"hashes": near, **facts}).all())
    teachers = [each for each in near if fastest.get(each) is not None]
    if len(teachers) < most and len(near) < len(family) - 1:
        family = _hashes(session, _family(teaching=True), facts)
        teachers = nearest(session, extents, workload_hash, family, most)
        fastest = dict(session.execute(_fastest_trace(), {"hashes": teachers, **facts}).all())
    # Each of so many gives its fastest; the fewer there are, the more each gives.
    if len(teachers) >= most:
        return [trace for each in teachers[:most] if (trace := fastest[each]) is not None]
    each = {"device_class_id": device_class_id, "most": min(PER_RELATIVE, most)}
    found = [session.scalars(_fastest_traces(), {"of_workload": teacher, **each}).all() for teacher in teachers]
    return [trace for rank in itertools.zip_longest(*found) for trace in rank if trace is not None][:most]


def nearest(session: Session, extents: Extents, workload_hash: str, family: Sequence[str], most: int) -> list[str]:
    """Return other workloads of a family, the nearest by their shapes first, at most ``most``.

    The distance of two is the sum of |log| of the ratios of their extents.
    """
    others = [each for each in family if each != workload_hash]
    [(size, here), *theirs] = extents.of(session, [workload_hash, *others])
    found: list[tuple[float, str]] = []
    differences = (abs(other_size - size) for other_size, _ in theirs)
    for least, other, (_, there) in sorted(zip(differences, others, theirs, strict=True)):
        # The sum of differences is at least the difference of the sums.
        if len(found) == most and least > found[-1][0] + _ROUNDING:
            break
        distance = round(sum(map(abs, map(operator.sub, here, there))), _DIGITS)
        if len(found) < most or (distance, other) < found[-1]:
            insort(found, (distance, other))
            del found[most:]
    return [other for _, other in found]


def _hashes(session: Session, statement: Select[str], facts: dict[str, str]) -> list[str]:
    joined = session.scalar(statement, facts)
    return [] if joined is None else joined.split(_SEPARATOR)


_TEACHES = (
    Trial.device_class_id == bindparam("device_class_id"),
    Trial.tvm_version == Workload.tvm_version,
    Trial.codegen_version <= CODEGEN_VERSION,
    Trial.median.is_not(None),
    Trial.trace_json.is_not(None),
)
"""Conditions on the trials of a workload whose traces others can begin with."""


@cache_statements
def _family(*, teaching: bool) -> Select[str]:
    """Select the hashes of the family of ``workload_hash``, itself among them, as one text.

    With ``teaching``, those with trials that teach, of the same TVM version.
    """
    own = aliased(Workload)
    of_own = own.hash == bindparam("workload_hash")
    family = select(own.family).where(of_own, own.family != "").scalar_subquery()
    members = select(func.aggregate_strings(Workload.hash, _SEPARATOR)).where(Workload.family == family)
    if not teaching:
        return members
    version = select(own.tvm_version).where(of_own).scalar_subquery()
    return members.where(
        Workload.tvm_version == version, exists().where(Trial.workload_hash == Workload.hash, *_TEACHES)
    )


@cache_statements
def _args() -> Select[str, list[Any]]:
    return select(Workload.hash, Workload.args).where(Workload.hash.in_(bindparam("hashes", expanding=True)))


@cache_statements
def _fastest_traces() -> Select[str | None]:
    return (
        select(Trial.trace_json)
        .join(Workload, Trial.workload_hash == Workload.hash)
        .where(Trial.workload_hash == bindparam("of_workload"), *_TEACHES)
        # By nothing else, or SQLite would walk through the medians of all workloads.
        .order_by(Trial.median)
        .limit(bindparam("most", type_=Integer))
    )


@cache_statements
def _fastest_trace() -> Select[str, str | None]:
    """Select the fastest trace of each of some workloads that teach ``workload_hash``, by a seek for each of them."""
    own = aliased(Workload)
    version = select(own.tvm_version).where(own.hash == bindparam("workload_hash")).scalar_subquery()
    fastest = select(Trial.trace_json).where(Trial.workload_hash == Workload.hash, *_TEACHES).order_by(Trial.median)
    return select(Workload.hash, fastest.limit(1).correlate(Workload).scalar_subquery()).where(
        Workload.hash.in_(bindparam("hashes", expanding=True)), Workload.tvm_version == version
    )
