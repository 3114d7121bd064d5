"""A tuned function as a library that needs neither Loopwright nor TVM's compiler: from Python and from C++.

    .venv/bin/python -m examples.deployment

Exporting a shared library, and building the C++ program, needs a C++ compiler (`c++`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import tvm_ffi

import loopwright
from examples.mm_relu import TVMSCRIPT

PYTHON = """
import sys
import numpy as np
import tvm_ffi
function = tvm_ffi.load_module(sys.argv[1])["main"]
a, b = (np.random.default_rng(seed).standard_normal((128, 128), dtype="float32") for seed in (0, 1))
c = np.empty((128, 128), "float32")
function(*(tvm_ffi.from_dlpack(array) for array in (a, b, c)))  # NumPy's memory, no copies
np.testing.assert_allclose(c, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)
assert not {"loopwright", "tvm"} & set(sys.modules)
print("Python: right, with", tvm_ffi.__name__, "alone")
"""


def main(client: loopwright.Client, trials: int = 32) -> None:
    job = client.submit(TVMSCRIPT, max_trials=trials, name="mm_relu").wait()
    assert job.state == "succeeded", job.error
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "mm_relu.so"
        client.compile(TVMSCRIPT).export_library(str(library))
        subprocess.run([sys.executable, "-c", PYTHON, library], check=True)
        subprocess.run([_built(Path(folder)), library], check=True)


def _built(folder: Path) -> Path:
    """The C++ program beside this file, built against TVM's FFI, which is a header and one small library."""
    program = folder / "deployment"
    libraries = Path(tvm_ffi.libinfo.find_libtvm_ffi()).parent
    includes = [
        f"-I{path}" for path in (tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path())
    ]
    source = Path(__file__).with_suffix(".cc")
    command = [os.environ.get("CXX", "c++"), "-std=c++17", "-O2", str(source), *includes, "-o", str(program)]
    subprocess.run([*command, f"-L{libraries}", "-ltvm_ffi", f"-Wl,-rpath,{libraries}"], check=True)
    return program


if __name__ == "__main__":
    main(loopwright.Client())
