"""The versions that all parts of a fleet need the same, as a controller announces them to hosts that want to join."""

from __future__ import annotations

from typing import Any

from loopwright.codegen.versions import CODEGEN_VERSION, TVM_FFI_VERSION, TVM_VERSION
from workers.ray import private

_NAMESPACE = b"loopwright"
_KEY = b"versions"


def own() -> str:
    """Return what builds depend on here, beside Ray and Python, which Ray compares itself."""
    return f"TVM {TVM_VERSION}, tvm-ffi {TVM_FFI_VERSION}, loopwright.codegen {CODEGEN_VERSION}"


def announce() -> None:
    """Store this process's versions at the head of the cluster that it is connected to, over those of one before."""
    private.gcs().internal_kv_put(_KEY, own().encode(), True, namespace=_NAMESPACE)


def announced(client: Any, seconds: float) -> str | None:
    """Return what was announced to the head of a ``GcsClient``; None if no controller was there yet."""
    stored = client.internal_kv_get(_KEY, namespace=_NAMESPACE, timeout=seconds)
    return None if stored is None else str(stored.decode())
