"""Something else on the machine: bursts of work on all cores, of random lengths, with random pauses.

PYTHON -m benchmarks.gates.noise SEED
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time

BUSY_SECONDS = (0.05, 3.0)
IDLE_SECONDS = (0.2, 6.0)


def burst(seed: int) -> None:
    draw = random.Random(seed)
    while True:
        time.sleep(draw.uniform(*IDLE_SECONDS))
        until = time.monotonic() + draw.uniform(*BUSY_SECONDS)
        while time.monotonic() < until:
            sum(range(10_000))


def main() -> None:
    # So that the end of this process, by the signal that ends it, ends the others.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    for core in range(len(os.sched_getaffinity(0))):
        multiprocessing.Process(target=burst, args=(int(sys.argv[1]) + core,), daemon=True).start()
    time.sleep(24 * 3600)


if __name__ == "__main__":
    main()
