"""What is read from assembly: its lines of code, its loops, the work of instructions, and what limits a loop."""

from __future__ import annotations

import textwrap

import pytest

from loopwright.codegen.kinds import LoopBound
from tuner.inspection.hot_loop import hottest, modelled
from tuner.inspection.listing import code_lines, loops
from tuner.inspection.x86 import Work, work

_ASSEMBLY = textwrap.dedent(
    """\
    \t.text
    \t.type\tmain,@function
    main:
    \t.cfi_startproc
    .Ltmp0:
    \tmovq\t%rdi, %rax
    \t.loc\t1 4 1 is_stmt 0
    \tvxorps\t%xmm0, %xmm0, %xmm0
    .LBB0_1:                                # %for_body
                                            # =>This Loop Header: Depth=1
    \txorl\t%ecx, %ecx
    .LBB0_2:
    .Ltmp1:
    \t.loc\t1 9 1
    \tvmovups\t(%rsi,%rcx,4), %ymm1
    \tvfmadd231ps\t(%rdx,%rcx,4), %ymm1, %ymm0 # ymm0 = (ymm1 * mem) + ymm0
    \taddq\t$8, %rcx
    \tcmpq\t$64, %rcx
    \tjne\t.LBB0_2
    \t.loc\t1 0 1
    \tincl\t%eax
    \tjne\t.LBB0_1
    \tretq
    .Lfunc_end0:
    \t.size\tmain, .Lfunc_end0-main
    \t.section\t.rodata
    .LCPI0_0:
    \t.long\t5
    """
)


_MULTIPLIED = Work(1, arithmetic=1, loads=1, stack=1, loaded_bytes=32, operations=8, vector_bytes=32, slot_bytes=16)


def test_lines_of_code_have_no_directives_and_the_lines_of_the_program() -> None:
    lines = code_lines(_ASSEMBLY)
    assert [line.text.split()[0] for line in lines] == [
        *("main:", "movq", "vxorps", ".LBB0_1:", "xorl", ".LBB0_2:"),
        *("vmovups", "vfmadd231ps", "addq", "cmpq", "jne", "incl", "jne", "retq"),
    ]
    texts = _ASSEMBLY.splitlines()
    assert all(texts[line.number - 1].startswith(line.text) for line in lines)
    located = {line.text.split()[0]: line.program_line for line in lines if line.label is None}
    assert (located["movq"], located["vxorps"], located["vfmadd231ps"], located["retq"]) == (None, 4, 9, None)


def test_loops_are_found_with_their_depths() -> None:
    outer, inner = loops(code_lines(_ASSEMBLY))
    assert (outer.depth, outer.innermost, inner.depth, inner.innermost) == (1, False, 2, True)
    assert outer.first < inner.first < inner.last < outer.last
    assert loops(code_lines("\t.type\tmain,@function\nmain:\n\tjmp\t.LBB0_1\n.LBB0_1:\n\tretq\n")) == []


@pytest.mark.parametrize("target", ["b.ne\t.LBB0_1", "cbnz\tx8, .LBB0_1", "tbz\tw8, #3, .LBB0_1"])
def test_loops_of_aarch64_are_found(target: str) -> None:
    text = f"\t.type\tmain,@function\nmain:\n.LBB0_1:\n\tfmla\tv0.4s, v1.4s, v2.4s\n\t{target}\n\tret\n"
    [loop] = loops(code_lines(text))
    assert (loop.first, loop.last) == (3, 5)


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("vfmadd231ps\t%zmm1, %zmm2, %zmm0", Work(1, fma=1, operations=32, vector_bytes=64, slot_bytes=64)),
        (
            "vfmadd231ps\t8(%rax,%rcx,4){1to16}, %zmm2, %zmm0",
            Work(1, fma=1, loads=1, loaded_bytes=4, operations=32, vector_bytes=64, slot_bytes=64),
        ),
        ("vfmadd213sd\t(%rax), %xmm2, %xmm0", Work(1, fma=1, loads=1, loaded_bytes=8, operations=2, slot_bytes=8)),
        ("vaddps\t%ymm1, %ymm0, %ymm0", Work(1, arithmetic=1, operations=8, vector_bytes=32, slot_bytes=16)),
        (
            "vdivps\t%ymm1, %ymm0, %ymm0",
            Work(1, arithmetic=1, divisions=1, operations=8, vector_bytes=32, slot_bytes=16),
        ),
        ("vpdpbusd\t%ymm1, %ymm0, %ymm2", Work(1, fma=1, operations=64, vector_bytes=32, slot_bytes=32)),
        (
            "vpmaddwd\t(%rdi), %ymm0, %ymm2",
            Work(1, fma=1, loads=1, loaded_bytes=32, operations=24, vector_bytes=32, slot_bytes=32),
        ),
        ("vmovups\t%ymm0, (%rdi,%rax)", Work(1, stores=1, stored_bytes=32)),
        ("vmovups\t(%rdi), %xmm0", Work(1, loads=1, loaded_bytes=16)),
        ("vbroadcastss\t(%rdi), %ymm0", Work(1, loads=1, loaded_bytes=4)),
        ("vbroadcastss\t%xmm1, %ymm0", Work(1, shuffles=1)),
        ("vpermps\t%ymm1, %ymm2, %ymm0", Work(1, shuffles=1)),
        ("vpmovsxbd\t(%rdi), %ymm0", Work(1, shuffles=1, loads=1, loaded_bytes=8)),
        ("vextractf128\t$1, %ymm0, (%rdi)", Work(1, shuffles=1, stores=1, stored_bytes=16)),
        ("leaq\t(%rax,%rcx,4), %rdx", Work(1)),
        ("addq\t$32, %rax", Work(1)),
        ("addl\t%eax, (%rdi)", Work(1, loads=1, stores=1, loaded_bytes=4, stored_bytes=4)),
        ("cmpq\t$3, (%rdi)", Work(1, loads=1, loaded_bytes=8)),
        ("movl\t%eax, (%rdi)", Work(1, stores=1, stored_bytes=4)),
        ("prefetcht0\t(%rdi)", Work(1)),
        ("vmovups\t%ymm0, 64(%rsp)", Work(1, stores=1, stack=1, stored_bytes=32)),
        ("vmulps\t64(%rsp,%rax), %ymm1, %ymm0", _MULTIPLIED),
        ("vzeroupper", Work(1)),
    ],
)
def test_the_work_of_an_instruction(instruction: str, expected: Work) -> None:
    assert work(f"\t{instruction} # a comment, (%rax)") == expected


def _loop(*instructions: str) -> str:
    inside = "\n".join(f"\t{each}" for each in (*instructions, "jne\t.LBB0_1"))
    return f"\t.type\tmain,@function\nmain:\n.LBB0_1:\n{inside}\n\tretq\n"


def _bound(*instructions: str) -> tuple[LoopBound, float, float]:
    lines = code_lines(_loop(*instructions))
    [loop] = loops(lines)
    model = modelled(lines, loop, vector_bytes=32)
    return model.bound, model.cycles, model.peak_share


def test_what_limits_a_loop() -> None:
    tile = [f"vfmadd231ps\t%ymm15, %ymm14, %ymm{n}" for n in range(12)]
    assert _bound(*tile) == (LoopBound.ARITHMETIC, 6.0, 1.0)
    assert _bound(*tile[:3])[:2] == (LoopBound.LATENCY, 4.0)
    assert _bound(*tile[:1] * 3)[:2] == (LoopBound.LATENCY, 12.0)
    loads = [f"vmovups\t{32 * n}(%rsi), %ymm{n}" for n in range(16)]
    assert _bound(*loads)[:2] == (LoopBound.LOADS, 8.0)
    stores = [f"vmovups\t%ymm{n}, {32 * n}(%rsi)" for n in range(16)]
    assert _bound(*stores) == (LoopBound.STORES, 16.0, 0.0)
    assert _bound(*["vpermps\t%ymm1, %ymm2, %ymm3"] * 5)[:2] == (LoopBound.SHUFFLES, 5.0)
    assert _bound(*["addq\t$1, %rax"] * 7)[:2] == (LoopBound.INSTRUCTIONS, 2.0)


def test_a_sum_that_is_set_anew_in_each_iteration_waits_for_no_earlier_one() -> None:
    assert _bound("vxorps\t%xmm0, %xmm0, %xmm0", "vfmadd231ps\t%ymm1, %ymm2, %ymm0")[0] is not LoopBound.LATENCY
    # A polynomial: each writes what the next one multiplies, and reads a register that nobody writes.
    assert _bound("vmovaps\t%ymm9, %ymm0", "vfmadd213ps\t%ymm5, %ymm1, %ymm0")[0] is not LoopBound.LATENCY


def test_the_hot_loop_has_the_line_that_is_reached_most_often() -> None:
    lines = code_lines(_ASSEMBLY)
    found = loops(lines)
    assert hottest(lines, found, {4: 1, 9: 4096}) == 1
    assert hottest(lines, [], {9: 4096}) is None
    # Of a main loop and its rest, which have the same line, the one with more vectors.
    twice = _ASSEMBLY.replace(
        "\tretq", "\t.loc\t1 9 1\n.LBB0_3:\n\tvaddss\t%xmm1, %xmm0, %xmm0\n\tjne\t.LBB0_3\n\tretq"
    )
    lines = code_lines(twice)
    assert hottest(lines, loops(lines), {9: 4096}) == 1
