"""Each room of the house has a ceiling of lines: what would grow past it is first looked at for what can go."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DASHBOARD = "service/dashboard"
CEILINGS = {
    # The aim is 50,000 lines of product, 38,000 of tests, 7,500 of benchmarks and 10,500 of the dashboard. A feature
    # that needs more raises the ceiling of its room in its own commit, with the reason beside the number.
    # Folders of their own, and answers that are the model's: its compared program, also on special values, its state,
    # ONNX's own semantics with its norms, resizing, reductions and recurrent layers, and PyTorch's dtypes, NaN, norms,
    # quotients and sorts; which values an argument may have; a convolution by Winograd that keeps infinities; limits of
    # what data decides. Models with a state. Signed certificates and verdicts, which the client verifies, also of
    # exports. The proof of what is built, and checks before TVM reads a graph. Quantised models: their operators,
    # integer products, and weights that are decoded where they are read. Intrinsics for bytes. Decoders, whose
    # programs share weights. A cache. Products of blocks of integers, and attention of ONNX Runtime with a cache. The
    # rules of the built-in space, which the search had before: the client answers with them where nothing is known.
    # Models that are compiled in a process of their own. Blocks of keys that are seen, numbers of 4 bits that are
    # looked up, and memory in huge pages. Convolutions of bytes by VNNI, images of bytes that are turned. Recurrent
    # layers as functions with all steps in them, also loops over PyTorch's cells. One command, with a service in the
    # background. Two jobs side by side, tags, phases, figures; what an assembly says of its loops; ablations. Locks of
    # many shapes, decoders and graphs of torch.compile. What limits a job's functions. Answers that are kept. Windows
    # along lines, tiles that are turned in registers, padding, and functions that are compiled on all cores.
    # Functions that are compiled once for all models, a cache that is loaded without the client's models, fetching
    # ahead, and names of machines. Mapped weights, calls by what they are about, squeeze and excite with the functions
    # around it, norms of groups, rows of a head among threads. Columns and channels of quantised models that no vector
    # divides. Pages of jobs that sign in, places of bests. Scans in vectors, a few elements that are chosen without a
    # sort, and stages along columns. Complex numbers and Fourier transforms of PyTorch.
    "client": 47_110,
    # Closing races planned within a job's time, of several functions at once. Its rules are the client's. What assembly
    # says. Neighbours of a program, and their races. First choices that are measured against what was found.
    "tuner": 8_460,
    # Programs run in a process that another one measures. Lists of the system calls that are allowed. Noisy races.
    # References that are built ahead of races, and races that share processes.
    # Starts of Ray that a busy machine draws out. Rates within caches, and models without schedules as one program.
    "workers": 9_260,
    # Keys and their revocation, and the evidence that certificates and rechecks sign, also of imports.
    # Reports of a whole fleet at once, places that call a task, sizes by which relatives are found. A queue that is
    # never read whole, counts of jobs, tallies of trials, and ages. Phases, tags and the order of jobs. Ablations.
    # Leases of devices, and an archive of what is deleted. Versions of what is stored and of parts of it, statements
    # that are made once, and transactions that count themselves. Statements of claims, submissions, outcomes and pages
    # that are made once, each a function with its parameters, waiting for a server's connections, and keys of bests.
    # Search by place. What a transaction writes at its end in one statement, and claims in one.
    # Relatives that are found in memory.
    "db": 11_700,
    # Functions that are certified after their job. Housekeeping. What a job waits for. Ablations and lineage.
    # Devices divided among controllers, several API processes, and what limits the functions of a job. Kept answers,
    # the topics that they show, and a look-up of records.
    # Places of bests and gates.
    "service": 11_150,
    "scripts": 1_020,
    "docs": 600,
    "deploy": 400,
    "examples": 900,
    # Repeated certificates, ONNX files as their authors publish them, cases of few bits, and a decoder as four engines
    # take it, parallel loops on two pools of threads, whole nets as users deploy them, the prior with flips of
    # searches, controllers that share devices, calls as the queue grows, and a client of HTTP that costs little beside
    # the service, beyond the aim of 7,500.
    "benchmarks": 12_920,
    # tests/semantics: operators of PyTorch and ONNX against PyTorch and ONNX Runtime, and by ONNX's own tests; and the
    # marks of the whole. All system calls at each level. Fair places. Copies of a statement. Verdicts and revoked keys.
    # Certificates of imports. Quantised operators, products of bytes. Decoders. A cache. How a budget is shared.
    # Packs from hostile hands. Threads of our own. First choices without trials. Starts of the service and of Ray.
    # Races together. Compiling in a child. Recurrent layers. Simulated faults. Ten jobs on all surfaces. The wheels
    # alone, and a service in the background. Assembly. Answers that are kept, and who may have them. Compiled functions
    # of all models. The form of submissions. Servers without a free connection.
    # Search by place.
    "tests": 65_370,
    # Programs and assembly with linked lines. What decisions bring, and where schedules come from. Two jobs side by
    # side, phases, calibration, coverage, figures, the line that an error names, and answers that are kept.
    DASHBOARD: 16_300,
}
_SUFFIXES = {DASHBOARD: {".ts", ".tsx", ".css", ".mjs"}}


@functools.cache
def lines_by_room() -> dict[str, int]:
    """Return the lines of hand-written code, tracked or new, in each room."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sizes = dict.fromkeys(CEILINGS, 0)
    for name in filter(None, listed.split("\0")):
        room = DASHBOARD if name.startswith(f"{DASHBOARD}/") else name.split("/")[0]
        path = ROOT / name
        if path.suffix in _SUFFIXES.get(room, {".py"}) and path.is_file():
            assert room in CEILINGS, f"{name} is in a room without a ceiling: give {room} one in {Path(__file__).name}"
            sizes[room] += len(path.read_bytes().splitlines())
    return sizes


@pytest.mark.parametrize("room", CEILINGS)
def test_a_room_stays_below_its_ceiling(room: str) -> None:
    size = lines_by_room()[room]
    assert size <= CEILINGS[room], (
        f"{room} has {size} lines, {size - CEILINGS[room]} over its ceiling. Look for what your change makes "
        f"superfluous; then raise the ceiling in {Path(__file__).name}, with the reason beside the number"
    )
