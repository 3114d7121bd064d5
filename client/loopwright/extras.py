"""Imports TVM, which ``pip install 'loopwright[tvm]'`` brings, only when a call works on programs."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from loopwright.codegen.host import threads
from loopwright.codegen.versions import check_versions
from loopwright.errors import TvmUnavailable, UnsupportedVersion

logger = logging.getLogger("loopwright")


def require_tvm() -> Any:
    """Return the tvm package. Called before the first import of a module of `loopwright.codegen` that needs it.

    It sets the environment variables of TVM's runtime that are not set
    (`loopwright.codegen.host.threads.set_defaults`), and installs the threads that run parallel loops
    (`loopwright.codegen.host.pool`).

    Raises:
        TvmUnavailable: it is not installed, or not in the versions that the service speaks.
    """
    try:
        check_versions()
        if warning := threads.set_defaults():
            logger.warning("%s", warning)
        tvm = importlib.import_module("tvm")
        importlib.import_module("loopwright.codegen.host.pool").install()
        return tvm
    except (ImportError, UnsupportedVersion) as error:
        raise TvmUnavailable(
            f"this call needs TVM; install it with: pip install 'loopwright[tvm]' ({error})"
        ) from error
