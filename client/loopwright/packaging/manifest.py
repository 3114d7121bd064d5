"""The manifest of a package, ``manifest.json``."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from loopwright.codegen.kinds import Values
from loopwright.schemas import Certificate


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class TensorSpec(Part):
    """``name`` is empty where there is none. ``values`` are those with which a function is verified."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    values: Values = Values.ANY


class Packing(Part):
    """Before its calls, ``function`` packs the argument at ``argument`` into a tensor of this shape and dtype."""

    function: str
    argument: int
    shape: tuple[int, ...]
    dtype: str


class Check(Part):
    """Two functions of ``checks.so`` on the same arguments: the tuned program, and the unscheduled one."""

    tuned: str
    reference: str
    args: tuple[TensorSpec, ...]
    outputs: tuple[bool, ...]
    """For each argument whether the functions only write it."""
    packing: Packing | None


class PackagedFunction(Part):
    """A function of the model. Without a best, TVM's default schedule is in the library."""

    name: str
    outcome: Literal["tuned", "baseline", "missed"]
    workload_hash: str | None
    record_id: str | None
    device_class: str | None
    certificate: Certificate | None
    check: Check | None


class Licence(Part):
    """``files`` lie in the package."""

    of: str
    version: str
    licence: str
    files: tuple[str, ...]


class MappedWeight(Part):
    """A constant of the model in ``weights.bin``, from its byte ``first`` on."""

    shape: tuple[int, ...]
    dtype: str
    first: int


class Weights(Part):
    """The model's constants, as they are packed for it: large ones lie in ``weights.bin``, others in ``model.so``."""

    count: int
    bytes: int


class Example(Part):
    """Inputs in ``example.npz`` and what they give, which ``reference`` computed; bf16 is stored as f32."""

    reference: str
    tolerance: float
    """Of the largest magnitude of an output."""


class Manifest(Part):
    format: Literal[1] = 1
    name: str
    created_at: datetime
    loopwright: str
    tvm: str
    tvm_ffi: str
    target: dict[str, Any]
    threads: int = Field(ge=1)
    """With which its functions were certified; without any, the cores of the machine that packaged it."""
    inputs: tuple[TensorSpec, ...]
    mapped: tuple[MappedWeight, ...] = ()
    """In order, what ``main`` takes behind the inputs. Earlier packages have none."""
    weights: Weights
    functions: tuple[PackagedFunction, ...]
    example: Example
    files: dict[str, str]
    """SHA-256 of each other file."""
    licences: tuple[Licence, ...]
