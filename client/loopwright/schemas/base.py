"""Common parts of the wire models: states, pages, errors."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from loopwright.codegen import labels, worker_labels
from loopwright.codegen.kinds import ThrottleReason


def _shown(text: str) -> str:
    if (complaint := labels.complaint(text)) is not None:
        raise ValueError(complaint)
    return text


Label = Annotated[str, Field(min_length=1, max_length=labels.LONGEST), AfterValidator(_shown)]
"""A name that somebody gives; see `loopwright.codegen.labels`."""

MOST_TAGS = 16
Tags = Annotated[list[Annotated[Label, Field(max_length=64)]], Field(max_length=MOST_TAGS)]
"""Words that users give to jobs."""

LabelWord = Annotated[str, Field(pattern=f"^{worker_labels.WORD}$")]
"""The key or the value of a worker's label; see `loopwright.codegen.worker_labels`."""

WorkloadHash = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class Wire(BaseModel):
    """Base of every wire model: unknown fields of a request are an error, not silence."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class AppliedRule(Wire):
    """The rule of the built-in space that made a schedule, and the values of its parameters (knobs)."""

    name: str
    """Name of the rule."""
    version: int
    """Version of the rule: another version generates other programs from the same parameters."""
    knobs: dict[str, int]
    """Values of its parameters, by name."""


class DeviceState(Wire):
    """The state of a GPU right after a timing, as its driver reports it. Fields that it does not report are None."""

    sm_mhz: int | None = None
    """Clock of the multiprocessors, in MHz."""
    memory_mhz: int | None = None
    """Clock of the memory, in MHz."""
    celsius: int | None = None
    """Temperature of the GPU, in degrees Celsius."""
    watts: int | None = None
    """Power draw; of recent GPUs the mean over the last second."""
    throttled: list[ThrottleReason] | None = None
    """Why the clocks were below their maximum; empty if they were not."""


class Version(Wire):
    """Versions of the service."""

    loopwright: str
    """Version of Loopwright."""
    tvm: str
    """Version of TVM; the client needs the same."""
    api: str
    """Version of the REST interface, as in its path."""


class Problem(BaseModel):
    """An error in the format of RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str = "about:blank"
    """``urn:loopwright:`` and the kind of the problem, for programs."""
    title: str
    """Title of the problem for people."""
    status: int
    """HTTP status of the answer."""
    detail: str
    """What is wrong with this request, and what to do."""
    request_id: str | None = None
    """Id of the request, for faults of the service: the service's log has more information under this id."""


Item = TypeVar("Item")


class Page(Wire, Generic[Item]):
    """One page of a list; ``next_page_token`` is None on the last one."""

    items: list[Item]
    """The items of this page."""
    next_page_token: str | None
    """What to send as ``page_token`` for the next page; None on the last one."""
