"""How many blocks of threads a multiprocessor of a GPU runs at a time, by the architecture."""

from __future__ import annotations

from dataclasses import dataclass

MULTIPROCESSORS = 108
"""A target does not say how many multiprocessors its GPUs have: an A100 has 108, an H100 132."""
_REGISTERS = 64 * 1024
WARP = 32
"""Threads that run together."""
_REGISTERS_OF_A_WARP = 256
"""Registers are given to warps in multiples of these."""
_RESERVED_BYTES = 1024
"""Shared memory that the system takes of each block, from compute capability 8.0 on."""


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """The resources of a multiprocessor for the blocks that it runs at a time.

    ``shared_bytes`` is its shared memory, ``threads`` and ``blocks`` are the most that it runs at a time, and
    ``multiplications`` is how many float32 it multiplies and adds in a clock cycle.
    """

    shared_bytes: int
    threads: int
    blocks: int
    multiplications: int

    @staticmethod
    def of(capability: int) -> Multiprocessor:
        """Return that of a compute capability, times ten; the smallest one if it is not known."""
        return _BY_CAPABILITY.get(capability, _BY_CAPABILITY[75])

    def resident_blocks(self, threads: int, registers: int, shared_bytes: int) -> int:
        """Return how many blocks run at a time, by their threads, the registers of a thread and their shared memory."""
        warps = -(-threads // WARP)
        registers_of_a_warp = -(-registers * WARP // _REGISTERS_OF_A_WARP) * _REGISTERS_OF_A_WARP
        return min(
            self.blocks,
            self.threads // (warps * WARP),
            _REGISTERS // (warps * registers_of_a_warp),
            self.shared_bytes // (shared_bytes + _RESERVED_BYTES),
        )


_BY_CAPABILITY = {
    70: Multiprocessor(96 * 1024, 2048, 32, 64),
    72: Multiprocessor(96 * 1024, 2048, 32, 64),
    75: Multiprocessor(64 * 1024, 1024, 16, 64),
    80: Multiprocessor(164 * 1024, 2048, 32, 64),
    86: Multiprocessor(100 * 1024, 1536, 16, 128),
    87: Multiprocessor(164 * 1024, 1536, 16, 128),
    89: Multiprocessor(100 * 1024, 1536, 24, 128),
    90: Multiprocessor(228 * 1024, 2048, 32, 128),
    100: Multiprocessor(228 * 1024, 2048, 32, 128),
    103: Multiprocessor(228 * 1024, 2048, 32, 128),
    120: Multiprocessor(100 * 1024, 1536, 24, 128),
}
"""From the tables "Technical Specifications per Compute Capability" and "Throughput of Native Arithmetic Instructions"
of the CUDA C++ Programming Guide."""
