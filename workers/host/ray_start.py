"""``ray start``, which shuts down in order when the process that started it ends, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal

from ray.scripts.scripts import main

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise SystemExit(1)
    main()
