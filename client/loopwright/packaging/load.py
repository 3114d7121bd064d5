"""Runs the packaged model in a folder. It needs Python's package apache-tvm-ffi, and NumPy or PyTorch for its inputs.

    from load import load
    model = load()
    outputs = model(*inputs)

The folder holds TVM's runtime, which has no compiler.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


class _WithoutTorch:
    """Hides PyTorch and NVIDIA's bindings from this thread's imports: tvm_ffi would load them where they are installed.

    PyTorch takes 0.2 GB and a second, the bindings 0.06 s. A process that has PyTorch already, or that loads it later,
    can pass its tensors all the same. The bindings are for streams of a GPU, and the packaged model runs on a CPU.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in ("torch", "cuda") and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)


with _WithoutTorch():
    import tvm_ffi

THREADS = "loopwright.install_threads"
"""The function of this name is registered where parallel loops run on Loopwright's threads instead of TVM's."""
CPU, POOLED = 1, 2
"""TVM's numbers of a device and of an allocator."""
ALIGNMENT = 64
"""Bytes, of the memory that tuned code reads in vectors."""
WEIGHTS = "weights.bin"
"""The file with weights that are mapped into memory."""
HUGE_PAGE = 2 << 20
"""Bytes, on x86-64 and on AArch64 with pages of 4 KiB."""
COLLAPSE = 25
"""``MADV_COLLAPSE``, of Linux 6.1 and later; Python has no name for it."""
MAYMOVE_FIXED = 1 | 2
"""``MREMAP_MAYMOVE | MREMAP_FIXED`` of Linux."""
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


class PackagedModel:
    """Callable with the model's inputs in order: tensors of PyTorch or anything else with DLPack, without a copy if
    they are contiguous and aligned to 64 bytes. It returns what the inputs are: tensors of PyTorch, or arrays of NumPy.

    ``run`` is the function itself, from ``tvm_ffi.Tensor`` to the same, which checks less and converts nothing.
    """

    def __init__(self, folder: Path) -> None:
        self.manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        load_runtime(folder, self.manifest["threads"])
        before = anonymous_memory()
        with quiet():
            self._executable = tvm_ffi.load_module(str(folder / "model.so"))
            machine = self._executable["vm_load_executable"]()
        give_back_weights(folder / "model.so")
        pages = anonymous_memory() - before
        machine["vm_initialization"](CPU, 0, POOLED)
        # The kernel may have to make room: for some milliseconds a page, which the first call does not wait for.
        if forms := self.manifest.get("mapped"):
            memory, weights = mapped(folder / WEIGHTS, forms)
            machine["save_function"]("main", "main", True, *weights)  # with the weights behind its inputs
            threading.Thread(target=copy_to_huge_pages, args=(memory,), daemon=True).start()
        threading.Thread(target=move_to_huge_pages, args=(pages,), daemon=True).start()
        self._machine, self.run = machine, machine["main"]
        self._inputs = [(each["name"], tuple(each["shape"])) for each in self.manifest["inputs"]]

    def __call__(self, *inputs: Any) -> Any:
        """Raises ValueError: the number or a shape of the inputs is not the model's."""
        if len(inputs) != len(self._inputs):
            names = ", ".join(name for name, _ in self._inputs)
            raise ValueError(f"the model takes {len(self._inputs)} inputs ({names}), and was given {len(inputs)}")
        for (name, shape), value in zip(self._inputs, inputs, strict=True):
            if tuple(value.shape) != shape:
                raise ValueError(f"input {name} has the shape {tuple(value.shape)}, and the model takes {shape}")
        return like(self.run(*map(as_tensor, inputs)), inputs)


def load(folder: str | Path = Path(__file__).parent) -> PackagedModel:
    """Return the packaged model in a folder.

    Args:
        folder: what `Client.package` wrote.

    Raises:
        FileNotFoundError: there is none.
    """
    return PackagedModel(Path(folder).absolute())


def load_runtime(folder: Path, threads: int) -> None:
    """Load TVM's runtime into the process, unless it is there, with one thread for each core as the model was tuned."""
    if hasattr(os, "sched_getaffinity"):
        threads = max(1, min(threads, len(os.sched_getaffinity(0))))
    # The runtime reads these when it runs the first parallel loop. By itself it would take half of the processors on
    # x86-64, and bind the threads to them.
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("TVM_NUM_THREADS", str(threads))
    os.environ.setdefault("TVM_BIND_THREADS", "0")
    if "tvm" not in sys.modules and tvm_ffi.get_global_func("runtime.NumThreads", allow_missing=True) is None:
        ctypes.CDLL(str(folder / "lib" / "libtvm_runtime.so"), ctypes.RTLD_GLOBAL)
    own = folder / "lib" / "libloopwright_threads.so"
    if own.exists() and tvm_ffi.get_global_func(THREADS, allow_missing=True) is None:
        install = tvm_ffi.load_module(str(own))["install"]
        install()
        tvm_ffi.register_global_func(THREADS, install)


def give_back_weights(library: Path) -> None:
    """Let the kernel take the pages with a loaded library's weights, of which the executable has made tensors.

    What reads them all the same gets them from the file again. Without it, the weights are resident twice.
    """
    if sys.platform != "linux":
        return
    size = ctypes.c_uint64.in_dll(ctypes.CDLL(str(library)), "__tvm_ffi__library_bin")  # in front of the bytes
    first = ctypes.addressof(size)
    start, end = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, (first + size.value) // mmap.PAGESIZE * mmap.PAGESIZE
    if start < end:
        ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


def anonymous_memory() -> set[int]:
    """Return the addresses of the huge pages that lie in memory of this process alone, without a file behind it."""
    if sys.platform != "linux":
        return set()
    pages: set[int] = set()
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        # The name of a file, or of a part of the process, comes last.
        area, access, _, _, file, *name = line.split()
        if access == "rw-p" and file == "0" and name in ([], ["[heap]"]):
            start, end = (int(address, 16) for address in area.split("-"))
            pages.update(range(-(-start // HUGE_PAGE) * HUGE_PAGE, end - HUGE_PAGE + 1, HUGE_PAGE))
    return pages


def move_to_huge_pages(pages: Iterable[int]) -> None:
    """Let the kernel put memory that is in use into huge pages, at the same addresses.

    Each call reads all weights. In pages of 4 KiB, the processor begins anew at each page to fetch ahead. A kernel
    before Linux 6.1 leaves the memory as it is.
    """
    madvise = ctypes.CDLL(None).madvise
    for page in pages:
        madvise(ctypes.c_void_p(page), ctypes.c_size_t(HUGE_PAGE), COLLAPSE)


def mapped(file: Path, forms: Iterable[Mapping[str, Any]]) -> tuple[Any, list[Any]]:
    """Return a file's memory, and the tensors in it, which are read from the file when a program reads them.

    Args:
        file: what `loopwright.packaging.exporting.export_apart` wrote.
        forms: the shape, dtype and first byte of each tensor, as it returned them.

    Raises:
        ValueError: the file is too short.
    """
    import numpy as np

    # Not "r": NumPy exports no memory by DLPack that may not be written. What is written stays in this process.
    memory = np.asarray(np.memmap(file, np.uint8, "c"))
    view = tvm_ffi.get_global_func("runtime.TVMTensorCreateView")

    def tensor(first: int, shape: Sequence[int], dtype: str) -> Any:
        return view(tvm_ffi.from_dlpack(memory[first:]), tvm_ffi.Shape(shape), tvm_ffi.dtype(dtype), 0)

    return memory, [tensor(**form) for form in forms]


def copy_to_huge_pages(memory: Any) -> None:
    """Put bytes of a mapped file into huge pages, at the same addresses: the kernel itself moves only other memory.

    Each huge page is filled beside the map, and then takes the place of that part of it. A thread that reads there
    meanwhile waits in the kernel, and finds the same bytes. On one thread of AMD Zen 4, a product of one row with 80 MB
    of weights takes 0.53 times as long as with a file in pages of 4 KiB, and as long as with one in larger folios.
    """
    if not _grants_huge_pages():
        return
    libc, size, address, failed = ctypes.CDLL(None), ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p(-1).value
    libc.mmap.restype = libc.mremap.restype = address
    start = -(-memory.ctypes.data // HUGE_PAGE) * HUGE_PAGE
    end = (memory.ctypes.data + memory.nbytes) // HUGE_PAGE * HUGE_PAGE
    room = end - start + HUGE_PAGE
    access, kind = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    made = libc.mmap(None, size(room), access, kind, -1, size(0)) if start < end else None
    if made in (None, failed):  # there is no whole huge page in the map, or no room
        return
    page = first = -(-made // HUGE_PAGE) * HUGE_PAGE
    libc.madvise(address(first), size(end - start), mmap.MADV_HUGEPAGE)
    for place in range(start, end, HUGE_PAGE):
        ctypes.memmove(page, place, HUGE_PAGE)
        if libc.mremap(address(page), size(HUGE_PAGE), size(HUGE_PAGE), MAYMOVE_FIXED, address(place)) == failed:
            break  # the process may have no more maps
        page += HUGE_PAGE
    libc.munmap(address(made), size(first - made))
    libc.munmap(address(page), size(made + room - page))


def _grants_huge_pages() -> bool:
    try:
        return "[never]" not in _HUGE_PAGES.read_text(encoding="ascii")
    except OSError:  # another system, or a kernel without them
        return False


_ALONE = threading.Lock()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep out of standard error the line that TVM writes there for each scope of memory that it saves or loads."""
    with _ALONE, tempfile.TemporaryFile() as written:
        try:
            stderr = os.dup(2)
        except OSError:  # there is no standard error
            yield
            return
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            written.seek(0)
            os.write(2, b"".join(line for line in written if b"Warning: Scope " not in line))


def as_tensor(value: Any) -> Any:
    """Return the same memory, or a copy where it is not contiguous, not aligned or not to be shared."""
    if isinstance(value, tvm_ffi.Tensor):
        return value
    try:
        shared = tvm_ffi.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return tvm_ffi.from_dlpack(_copied(value))
    # Not by the arguments of from_dlpack that require it: a refusal takes 20 µs, and the first one 0.2 s and 30 MB for
    # the symbols of its backtrace.
    if shared.is_contiguous() and shared.data_ptr() % ALIGNMENT == 0:
        return shared
    return tvm_ffi.from_dlpack(_copied(value))


def _copied(value: Any) -> Any:
    if hasattr(value, "detach"):  # a tensor of PyTorch, whose own memory is aligned
        return value.detach().contiguous().clone()
    import numpy as np

    array = np.asarray(value)
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    aligned = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    aligned[...] = array
    return aligned


def like(value: Any, inputs: tuple[Any, ...]) -> Any:
    """Return a tensor, or each of several, as what the inputs are: a tensor of PyTorch, or an array of NumPy."""
    if not isinstance(value, tvm_ffi.Tensor):
        return tuple(like(each, inputs) for each in value)
    if any(type(each).__module__.partition(".")[0] == "torch" for each in inputs):
        return sys.modules["torch"].from_dlpack(value)
    import numpy as np

    return np.from_dlpack(value)
