"""Tuned code as libraries that need neither Loopwright nor TVM's compiler: a function from Python and C++, a model.

    .venv/bin/python -m examples.deployment

Exporting a shared library, and building the C++ program, needs a C++ compiler (`c++`).
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import tvm_ffi

import loopwright
from examples.mm_relu import TVMSCRIPT

FUNCTION = """
import ctypes, os, sys
import torch
import tvm_ffi
# As certified: this many threads, none bound to a core. TVM's runtime reads it when it runs the first parallel loop.
os.environ.setdefault("TVM_NUM_THREADS", sys.argv[3])
os.environ.setdefault("TVM_BIND_THREADS", "0")
ctypes.CDLL(sys.argv[2], ctypes.RTLD_GLOBAL)  # TVM's runtime: the threads of parallel loops
function = tvm_ffi.load_module(sys.argv[1])["main"]
a, b = torch.rand(128, 128) - 0.5, torch.rand(128, 128) - 0.5
c = torch.empty(128, 128)
# PyTorch's memory, no copies. TVM's code reads and writes it in vectors: it must be aligned.
function(*(tvm_ffi.from_dlpack(tensor, require_alignment=64) for tensor in (a, b, c)))
torch.testing.assert_close(c, torch.relu(a @ b), rtol=1e-4, atol=1e-4)
assert not {"loopwright", "tvm"} & set(sys.modules)
print("Python: right, with TVM's runtime alone")
"""

MODEL = """
import os, sys
import torch
import tvm
from tvm import relax
os.environ.setdefault("TVM_NUM_THREADS", sys.argv[3])
os.environ.setdefault("TVM_BIND_THREADS", "0")
machine = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
x, expected = torch.load(sys.argv[2])
torch.testing.assert_close(torch.from_dlpack(machine["main"](tvm.runtime.from_dlpack(x))), expected)
assert "loopwright" not in sys.modules
print("the model: right, without Loopwright")
"""


def main(client: loopwright.Client, trials: int = 32) -> None:
    job = client.submit(TVMSCRIPT, max_trials=trials, name="mm_relu").wait()
    assert job.state == "succeeded", job.error
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "mm_relu.so"
        loopwright.export_library(client.compile(TVMSCRIPT), library)
        threads = _certified_threads(client)
        runtime = _tvm_libraries() / "libtvm_runtime.so"
        subprocess.run([sys.executable, "-c", FUNCTION, library, runtime, threads], check=True)
        subprocess.run([_built(Path(folder)), library, threads], check=True)

        model, x = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU()).eval(), torch.rand(8, 64)
        job = client.submit(model, example_inputs=(x,), max_trials=trials, name="a layer").wait()
        assert job.state == "succeeded", job.error
        library = Path(folder) / "layer.so"
        loopwright.export_library(client.compile(model, example_inputs=(x,)), library)  # its weights are in it
        with torch.no_grad():
            torch.save((x, model(x)), Path(folder) / "layer.pt")
        threads = _certified_threads(client)
        subprocess.run([sys.executable, "-c", MODEL, library, Path(folder) / "layer.pt", threads], check=True)


def _certified_threads(client: loopwright.Client) -> str:
    """The number of threads with which the bests of the last compiled program were certified."""
    assert client.last_report is not None
    return str(client.last_report.threads[-1])


def _tvm_libraries() -> Path:
    """Where TVM's libraries are, found without loading them."""
    tvm = importlib.util.find_spec("tvm")
    assert tvm is not None
    assert tvm.origin is not None
    return Path(tvm.origin).parent / "lib"


def _built(folder: Path) -> Path:
    """The C++ program beside this file, built against TVM's FFI and runtime, which know no compiler."""
    program = folder / "deployment"
    libraries = [Path(tvm_ffi.libinfo.find_libtvm_ffi()).parent, _tvm_libraries()]
    includes = [
        f"-I{path}" for path in (tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path())
    ]
    source = Path(__file__).with_suffix(".cc")
    command = [os.environ.get("CXX", "c++"), "-std=c++17", "-O2", str(source), *includes, "-o", str(program)]
    command += [option for path in libraries for option in (f"-L{path}", f"-Wl,-rpath,{path}")]
    # The program names nothing of the runtime's: the library that it loads does.
    subprocess.run([*command, "-ltvm_ffi", "-Wl,--no-as-needed", "-ltvm_runtime"], check=True)
    return program


if __name__ == "__main__":
    main(loopwright.Client())
