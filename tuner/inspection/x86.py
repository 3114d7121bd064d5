"""The work of x86 instructions, in AT&T's syntax as LLVM writes it: what each computes, loads, stores and shuffles."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

_REGISTER_BYTES = {"zmm": 64, "ymm": 32, "xmm": 16}
_REGISTER = re.compile(r"%([xyz]mm)\d+")
_OPERAND = re.compile(r"(?:[^,()]|\([^)]*\))+")
_ELEMENT_BYTES = {"ps": 4, "pd": 8, "ph": 2, "ss": 4, "sd": 8, "sh": 2, "b": 1, "w": 2, "l": 4, "d": 4, "q": 8}
_SCALARS = ("ss", "sd", "sh")
_FMA = re.compile(r"v?fn?m(?:add|sub|addsub|subadd)(?:132|213|231)(ps|pd|ph|ss|sd|sh)$")
_FLOAT = re.compile(r"v?(?:add|sub|mul|div|max|min|sqrt|r(?:cp|sqrt)(?:14)?|round|rndscale|scalef)(ps|pd|ph|ss|sd|sh)$")
_INTEGER = re.compile(r"v?p(?:add|sub|mull|mins|minu|maxs|maxu|abs)(?:s|us)?([bwdq])$")
_DIVISION = re.compile(r"v?(?:div|sqrt)(?:ps|pd|ph|ss|sd|sh)$")
_PRODUCTS = {"dpbusd": 8, "dpbusds": 8, "dpwssd": 4, "dpwssds": 4, "dpbf16ps": 4, "maddwd": 3, "maddubsw": 6}
"""Multiplications and additions in 32 bits of a vector."""
_TILES = {"tdpbf16ps": 16 * 16 * 32 * 2, "tdpfp16ps": 16 * 16 * 32 * 2}
_TILES |= dict.fromkeys(("tdpbssd", "tdpbusd", "tdpbsud", "tdpbuud"), 16 * 16 * 64 * 2)
"""Multiplications and additions of two full tiles of AMX."""
_SHUFFLE = re.compile(
    r"v?(?:perm|shuf|unpck|punpck|pshuf|palignr|align|insert|extract|pinsr|pextr|pack|pmov|mov\w+dup)"
)
_BROADCAST = re.compile(r"v?p?broadcast(?:(ss|sd|[bwdq])$|[fi]\d+x\d+)")
_STACK = "(%rsp"
_ACCESSES_NOTHING = re.compile(r"lea|prefetch|nop|call|j|clflush|ldtilecfg|tilerelease")
_ONLY_READS = re.compile(r"cmp|test|v?u?comis|bt[bwlq]?$|push|i?mul[bwlq]$|i?div[bwlq]$|v?ptest|vtest")
"""Instructions whose last operand is read alone, unlike that of others without a V, which they also write."""
_ONLY_WRITES = re.compile(r"mov|v|set|pop|tilestored")


@dataclass(frozen=True, slots=True)
class Work:
    """What some instructions do, each counted once.

    ``operations`` are multiplications, additions, comparisons and the like of single elements, of which a fused
    multiplication and addition is two. ``vector_bytes`` is the widest vector that is computed with, 0 without any.
    """

    instructions: int = 0
    fma: int = 0
    """Fused multiplications and additions, and products of integers that sum by themselves."""
    arithmetic: int = 0
    """Other arithmetic of floating point numbers, or of vectors of integers."""
    divisions: int = 0
    """Divisions and square roots among the arithmetic."""
    shuffles: int = 0
    """What moves elements within or between registers."""
    loads: int = 0
    stores: int = 0
    stack: int = 0
    """Loads and stores on the stack: mostly values for which there was no register."""
    loaded_bytes: int = 0
    stored_bytes: int = 0
    operations: int = 0
    vector_bytes: int = 0
    slot_bytes: int = 0
    """Of all vectors that it computes with: those of a fused multiplication and addition in full, of others half."""

    def __add__(self, other: Work) -> Work:
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return Work(**(sums | {"vector_bytes": max(self.vector_bytes, other.vector_bytes)}))


def work(instruction: str) -> Work:
    """Return the work of one instruction, such as ``vfmadd231ps (%rsi), %zmm1, %zmm0``."""
    name, *rest = instruction.split(" # ")[0].split(None, 1)
    operands = [operand.strip() for operand in _OPERAND.findall(rest[0])] if rest else []
    registers = [_REGISTER_BYTES[kind] for operand in operands for kind in _REGISTER.findall(operand)]
    width = max(registers, default=0)
    loads, stores = _accesses(name, operands)
    size = _accessed_bytes(name, operands, width)
    fma, arithmetic, operations, computed = _computed(name, width)
    moves = _SHUFFLE.match(name) is not None or (_BROADCAST.match(name) is not None and not loads)
    return Work(
        instructions=1,
        fma=fma,
        arithmetic=arithmetic,
        divisions=int(_DIVISION.match(name) is not None),
        shuffles=int(moves),
        loads=loads,
        stores=stores,
        stack=(loads + stores) * any(_STACK in operand for operand in operands),
        loaded_bytes=loads * size,
        stored_bytes=stores * size,
        operations=operations,
        vector_bytes=width if computed > 8 else 0,
        slot_bytes=computed if fma else computed // 2,
    )


def _accesses(name: str, operands: list[str]) -> tuple[int, int]:
    """Return how many loads and stores an instruction makes."""
    if not operands or _ACCESSES_NOTHING.match(name):
        return 0, 0
    *sources, last = map(_is_memory, operands)
    if not last:
        return int(any(sources)), 0
    if _ONLY_READS.match(name):
        return 1, 0
    return (0, 1) if (len(operands) > 1 and _ONLY_WRITES.match(name)) or name.startswith(("set", "pop")) else (1, 1)


def _is_memory(operand: str) -> bool:
    return "(" in operand


def _accessed_bytes(name: str, operands: list[str], width: int) -> int:
    """Return the bytes of one access of an instruction to memory."""
    if any("{1to" in operand for operand in operands) or name.startswith(("vbroadcast", "vpbroadcast")):
        return _element_bytes(name)
    if name.endswith(_SCALARS) or not width:
        return 64 * 16 if name.startswith("tile") else _element_bytes(name)
    halved = re.match(r"v?pmov[sz]x([bwd])([wdq])$", name)  # from memory they read fewer bytes than they write
    if halved:
        return width * _ELEMENT_BYTES[halved[1]] // _ELEMENT_BYTES[halved[2]]
    part = re.match(r"v(?:extract|insert)[fi](\d+)", name)
    return int(part[1]) // 8 if part and int(part[1]) >= 128 else 16 if part else width


def _element_bytes(name: str) -> int:
    for suffix in ("ps", "pd", "ph", *_SCALARS, "b", "w", "l", "d", "q"):
        if name.endswith(suffix):
            return _ELEMENT_BYTES[suffix]
    return 8


def _computed(name: str, width: int) -> tuple[int, int, int, int]:
    """Return how many fused operations, other arithmetic and operations of elements an instruction is, and the bytes of
    the elements that it computes."""
    if name in _TILES:
        return 1, 0, _TILES[name], width
    product = _PRODUCTS.get(name.removeprefix("v").removeprefix("p")) if width else None
    if product is not None:
        return 1, 0, width // 4 * product, width
    fused = _FMA.match(name)
    found = fused or _FLOAT.match(name) or (_INTEGER.match(name) if width else None)
    if found is None:
        return 0, 0, 0, 0
    element = _ELEMENT_BYTES[found[1]]
    lanes = 1 if found[1] in _SCALARS else max(1, width // element)
    return (1, 0, 2 * lanes, lanes * element) if fused else (0, 1, lanes, lanes * element)
