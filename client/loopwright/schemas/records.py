"""Records: measured trials, and their import."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from loopwright.codegen.kinds import LoopBound, SandboxLevel, SignedBy
from loopwright.codegen.math_mode import MathMode
from loopwright.schemas.base import AppliedRule, DeviceState, Wire
from loopwright.schemas.evidence import SignedDocument
from loopwright.schemas.workloads import Certificate


class Record(Wire):
    """A measured trial."""

    id: str
    """Id of the record."""
    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    name: str
    """Name of the function."""
    source: str | None = None
    """Where the model of its job calls the function, as `Task.source`."""
    candidate: str = ""
    """Digest of its trace, by which certificates name contenders; empty from services before they gave it."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    median_us: float
    """Median latency of a call, in microseconds."""
    certified: bool
    """Whether it is the best of a certificate."""
    is_baseline: bool
    """Whether it is the unscheduled program."""
    job_id: str | None
    """The job that measured it; None for imported records."""
    sandbox: SandboxLevel | None = None
    """The sandbox of the process that measured it; None for imported records."""
    created_at: datetime
    """When it was measured or imported."""


class Reproduce(Wire):
    """Lines that show the record, and repeat the search with the same module, target, space, seed and budget."""

    cli: list[str]
    """Commands of a shell."""
    sdk: list[str]
    """Lines of Python."""


class ImportedCertificate(Wire):
    """A certificate that was issued for a record before it was imported, and what its signature is worth."""

    signed: SignedDocument
    """The document and its signature, which agree."""
    public_key: str
    """The key that has signed it, as `SigningKey.public_key`."""
    signed_by: SignedBy
    """Whose key it is: ``this service``, ``another deployment``, which anybody may be, or ``a revoked key``."""
    imported_at: datetime
    """When it was imported."""


class RecordDetail(Record):
    """A measured trial with its details."""

    trace: list[Any] | None
    """TVM's ``[instructions, decisions]``; None for the baseline."""
    rule: AppliedRule | None = None
    """The rule of the built-in space that made the trace; None if TVM's rules or a user's space did."""
    packs_weight: bool = False
    """Whether a weight is packed once, when a program is compiled with its values. No time of a call contains that."""
    math: MathMode = "fp32"
    """How the trace multiplies float32; ``tf32`` only where the workload permits it."""
    run_secs: list[float]
    """The samples, in seconds per call."""
    device: dict[str, Any]
    """The device class in full: its name, target, CPU features or GPU model, cores, threads, versions."""
    origin: str
    """Origin of the candidate, as `Trial.origin`."""
    predicted: float | None
    """Score that the cost model predicted: higher is faster, without a unit; None without a prediction."""
    parent: str | None
    """Digest of the candidate that it was mutated from; None if there is none."""
    worker: str | None
    """Worker that measured it; None for imported records."""
    device_state: DeviceState | None = None
    """Of the GPU that measured it, after the samples; None for CPUs and imported records, and if the driver told
    nothing."""
    seed: int | None
    """Seed of its job; None for imported records."""
    tvm_version: str
    """Version of TVM that measured it."""
    codegen_version: int = 1
    """The version of ``loopwright.codegen`` that applying the trace needs."""
    certificate: Certificate | None
    """Its certificate; None if it has none."""
    imported_certificate: ImportedCertificate | None = None
    """The certificate that came with an imported record; None if none came. It does not make the record certified."""
    script_before: str
    """TVMScript of the unscheduled program."""
    script_after: str
    """TVMScript of the scheduled program."""
    trace_python: str | None
    """The trace as code: a function body that schedules ``sch``; None for the baseline."""
    job_name: str | None
    """Name of the job that measured it; None for imported records."""
    reproduce: Reproduce | None
    """How to repeat the search; None for imported records."""


class ImportReport(Wire):
    """The result of ``POST /records/import``, with the reason for each line that was not imported."""

    workloads: int
    """Workloads that were new."""
    imported: int
    """Records that were stored."""
    duplicates: int
    """Records that the database already had."""
    errors: list[str]
    """A line for each record or certificate that was not imported, with the reason."""
    signed_here: int = 0
    """Records that came with a certificate of this service."""
    signed_elsewhere: int = 0
    """Records that came with a certificate of another deployment, of which this service knows nothing."""


class LoopModel(Wire):
    """One iteration of a loop: a count of its instructions, and the cycles that they take at least.

    The model knows what a core starts in a cycle: two vector operations, two loads, a store, a shuffle, and four
    instructions in all. Data is taken to be in the first cache, so that the loop may take longer.
    """

    instructions: int
    """Instructions of all kinds."""
    fma: int
    """Fused multiplications and additions, and products of integers that sum by themselves."""
    arithmetic: int
    """Other arithmetic of floating point numbers, or of vectors of integers."""
    divisions: int
    """Divisions and square roots among the arithmetic; the model does not know that they take longer."""
    shuffles: int
    """Instructions that move elements within or between registers."""
    loads: int
    """Reads of memory."""
    stores: int
    """Writes to memory."""
    stack: int
    """Loads and stores on the stack: mostly values for which there was no register."""
    loaded_bytes: int
    """Bytes that are read."""
    stored_bytes: int
    """Bytes that are written."""
    operations: int
    """Multiplications, additions and comparisons of single elements."""
    vector_bits: int
    """Width of the widest vectors that are computed with; 0 if there are none."""
    cycles: float
    """Cycles that an iteration takes at least."""
    bound: LoopBound
    """What takes these cycles."""
    peak_share: float
    """Share of the peak of the vector unit that the loop reaches at that speed."""


class CodeLoop(Wire):
    """A loop of an assembly, from a label to the jump back to it."""

    first: int
    """Number of its first line, from 1."""
    last: int
    """Number of its last line."""
    depth: int
    """How many loops it is in, itself included."""
    model: LoopModel | None
    """A static model of one iteration; None if the loop has others within it, and on processors other than x86."""


class CodeLine(Wire):
    """A line of an assembly with an instruction or a label."""

    number: int
    """Number of the line, from 1."""
    program_line: int | None
    """The line of the program that it comes from, by the compiler's debug locations; None if it is unknown."""


class Assembly(Wire):
    """The machine code of a scheduled program, and which line of the program each instruction comes from."""

    language: Literal["asm", "cuda"]
    """``asm``: assembly; ``cuda``: CUDA's source."""
    text: str
    """The program, as the compiler wrote it."""
    lines: list[CodeLine]
    """The lines of the assembly that are instructions, or labels that an instruction names. Others are directives."""
    program: str
    """The scheduled program that was compiled, as TVMScript; empty for CUDA, as is all that follows."""
    sources: list[int | None]
    """For each line of the program, the line of ``script_before`` that it computes; None if it is unknown."""
    loops: list[CodeLoop]
    """The loops, by their first lines."""
    hot_loop: int | None
    """Index of the loop whose lines a call reaches most often: most of the time is spent there; None without a loop."""
