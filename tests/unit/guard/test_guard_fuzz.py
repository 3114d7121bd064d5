"""Whatever text gets through, parsing it starts no process, opens no file for writing and imports nothing."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from collections import Counter

import pytest

from loopwright.codegen.errors import InvalidModule
from tests.unit.guard.scripts import MATMUL, RELAX
from tuner.guard.tvmscript import check_tvmscript

# Reads texts from stdin, parses each with TVM in a fork of its own (TVM's parser can crash on nonsense such as a shape
# of None), and prints for each what the interpreter's audit saw meanwhile, and whether it was parsed.
WATCHED_PARSER = """
import json, os, signal, sys
import tvm, ml_dtypes
from tvm import relax

texts = json.load(sys.stdin)
for text in texts["warm"]:
    tvm.script.from_source(text)

def parse(text, report):
    def hook(event, args):
        writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
        started = event.startswith(("os.", "subprocess.", "socket.", "shutil.", "ctypes.dlopen", "pty."))
        if writes or event == "import" or (started and event not in ("os.listdir", "os.scandir")):
            os.write(report, (event + "\\n").encode())
    signal.alarm(10)
    sys.addaudithook(hook)
    try:
        tvm.script.from_source(text)
        os.write(report, b"parsed\\n")
    except BaseException:
        pass
    os._exit(0)

seen = []
for text in texts["watched"]:
    read, write = os.pipe()
    if os.fork() == 0:
        parse(text, write)
    os.close(write)
    with os.fdopen(read) as report:
        seen.append(report.read().split())
    os.wait()
json.dump(seen, sys.__stdout__)
"""

HOSTILE = [
    "T.__loader__.get_data.__globals__['sys'].modules['os'].system('true')",
    "__import__('os').system('true')",
    "R.Tensor((\"__import__('os').system('true')\",), 'float32')",
    "R.Shape([\"__import__('os').system('true')\"])",
    *("exec", "eval", "open", "breakpoint", "exit", "input", "tvm", "T", "R", "__builtins__", "'import os'", "'exec'"),
    *(
        "T.target('llvm')",
        "R.Callable",
        "T.let",
        "R.Tuple",
        "I.meta_var",
        "T.meta_var('exec')",
        "cls",
        "Module",
        "None",
    ),
    *("T.Buffer", "T.handle", "(1, 2)", "['x', {'y': 'z'}]", "1 << 63", "A.data", "n", "'n * 2'", "T.Buffer(('n',))"),
]


def _parse(warm: list[str], watched: list[str]) -> list[list[str]]:
    """For each text the audit events while it was parsed, and `parsed` if it was."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED_PARSER],
        input=json.dumps({"warm": warm, "watched": watched}),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    seen: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return seen


def _replaced(tree: ast.Module, position: int, replacement: ast.expr) -> None:
    """Put another expression at the position-th place where an expression stands."""
    places: list[tuple[ast.AST, str, int | None]] = []
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                places.append((node, name, None))
            elif isinstance(value, list):
                places += [(node, name, i) for i, item in enumerate(value) if isinstance(item, ast.expr)]
    node, name, index = places[position % len(places)]
    if index is None:
        setattr(node, name, replacement)
    else:
        getattr(node, name)[index] = replacement


def _mutant(draw: random.Random) -> str:
    """A program with one to three expressions replaced. Hypothesis would draw others when other modules are loaded."""
    tree = ast.parse(draw.choice([MATMUL, RELAX]))
    own = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.expr)]
    for _ in range(draw.choice([1, 1, 2, 3])):
        text = draw.choice(draw.choice([HOSTILE, own]))
        _replaced(tree, draw.randrange(10_000), ast.parse(text, mode="eval").body)
    return ast.unparse(tree)


ATTACK = "@T.prim_func\ndef main(A: T.Buffer((4,), 'float32')):\n    A[0] = __import__('os').system('true')\n"
"""Not checked by the guard: the watch must see it."""


@pytest.mark.parametrize("examples", [24, pytest.param(1600, marks=pytest.mark.whole)])
def test_accepted_mutants_have_no_side_effects(examples: int) -> None:
    accepted: set[str] = set()
    refused: set[str] = set()

    draw = random.Random(1)
    for text in (_mutant(draw) for _ in range(examples)):
        try:
            accepted.add(check_tvmscript(text))
        except InvalidModule:
            refused.add(text)

    assert len(refused) > examples // 4
    assert len(accepted) > examples // 8
    warm = [check_tvmscript(MATMUL), check_tvmscript(RELAX)]
    attacked, *others = _parse(warm, [ATTACK, *sorted(accepted)])
    assert attacked.count("os.system") == 1
    seen = Counter(event for events in others for event in events)
    assert seen.pop("parsed") > examples // 40
    assert not seen
