"""The versions that modules, traces and records are bound to. Imports no TVM."""

from __future__ import annotations

import importlib.metadata

from loopwright.codegen.errors import UnsupportedVersion

TVM_VERSION = "0.27.0.post1"
"""TVM's JSON for modules and traces is bound to this version; it is stored with everything that TVM wrote."""
TVM_FFI_VERSION = "0.1.14.post1"
"""TVM's own metadata admits newer releases of tvm-ffi, but saving a module as JSON crashes with them."""
CODEGEN_VERSION = 2
"""What a trace may rely on in `loopwright.codegen`. Raised by one when traces come to need something that earlier
versions cannot do; a record stores the version that it needs."""
VECTOR_MATH_VERSION = 2
"""Records of earlier versions were measured with the C library's elementary functions, and keep them."""

PINS = {"apache-tvm": TVM_VERSION, "apache-tvm-ffi": TVM_FFI_VERSION}


def check_versions() -> None:
    """Check that the installed TVM and tvm-ffi are the pinned pair.

    Called wherever a process starts TVM, before TVM is imported.

    Raises:
        UnsupportedVersion: they are not, or one is not installed; the message says what to install.
    """
    present_pair = installed()
    if present_pair != PINS:
        needed = " and ".join(f"{name}=={version}" for name, version in PINS.items())
        present = " and ".join(f"{name} {version or '(none)'}" for name, version in present_pair.items())
        command = " ".join(f"'{name}=={version}'" for name, version in PINS.items())
        raise UnsupportedVersion(
            f"Loopwright needs {needed}, but {present} is installed; install them with: pip install {command}"
        )


def check_codegen_version(needed: int) -> None:
    """Check that this installation can apply a record that needs version ``needed`` of `loopwright.codegen`.

    Raises:
        UnsupportedVersion: it is too old; the message says how to upgrade.
    """
    if needed > CODEGEN_VERSION:
        raise UnsupportedVersion(
            f"this record needs version {needed} of loopwright.codegen, and version {CODEGEN_VERSION} is installed; "
            "upgrade loopwright: pip install -U 'loopwright[tvm]'"
        )


def installed() -> dict[str, str | None]:
    """Return the installed versions of the pinned pair; None for what is not installed."""
    return {name: _installed(name) for name in PINS}


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
