"""When two functions are the same program: the normal form of a workload, and the digest that identifies it."""

from __future__ import annotations

import ast
import hashlib
import json

import tvm
import tvm.s_tir
import tvm_ffi

from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.gpu.tf32 import permits_tf32
from loopwright.codegen.math_mode import TF32
from loopwright.codegen.syntax import parse

_LEFT_OUT = (b"#", b'\\"tvm_version\\":')
"""Beginnings of lines: comments, and the version beside what is printed apart, as texts of several lines are."""


def normal_form(func: tvm.tirx.PrimFunc) -> tvm.IRModule:
    """Return the workload that a PrimFunc is: a module whose only function is ``main``, as MetaSchedule wants it.

    The function's own name and whether it is private are dropped, and its buffers are said not to overlap
    (``tirx.noalias``), as MetaSchedule says of every workload. It is a copy: a schedule of a module that nobody else
    refers to changes statements in place, also those that it shares with other functions.
    """
    copy = tvm.s_tir.renew_defs(func)
    return tvm.IRModule({"main": copy.with_attr("global_symbol", "main").with_attr("tirx.noalias", True)})


def function_digest(func: tvm.tirx.PrimFunc) -> str:
    """Return the `workload_digest` of a function's normal form. Raises InvalidModule as it does."""
    return workload_digest(normal_form(func))


def workload_digest(mod: tvm.IRModule) -> str:
    """Return the identity of a workload in normal form: 32 hex digits of the SHA-256 of its canonical text.

    The text is TVM's printed form with canonical names of variables and buffers, so those names do not count. Names of
    blocks do, because traces refer to blocks by name, and so do the attributes that remain in the normal form. Equal
    digests are the only definition of "the same program": the client, the service and the database compare nothing
    else. TVM's structural hash is not used because it has differed between platforms.

    Raises:
        InvalidModule: the function is nested so deeply that its printed form cannot be parsed.
    """
    printed = str(mod.script())
    if 'metadata["' in printed:
        printed = str(mod.script(show_meta=True))
    try:
        tree = parse(printed)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise InvalidModule("a function is nested too deeply; store parts of its expressions in buffers") from error
    lines = [line.encode() for line in printed.splitlines()]
    for line, start, stop, name in reversed(_canonical_names(tree)):
        lines[line] = lines[line][:start] + name + lines[line][stop:]
    code = b"\n".join(line for line in lines if not line.lstrip().startswith(_LEFT_OUT))
    return hashlib.sha256(code).hexdigest()[:32]


def workload_family(mod: tvm.IRModule) -> str:
    """Return what a workload in normal form shares with those that differ in shapes, strides and padding only.

    It is a digest of 32 hex digits over the names of the blocks, the kinds of their axes, and the ranks and dtypes of
    the buffer parameters: as much as a trace depends on. What permits TF32 is a family of its own, since its traces are
    refused by others.
    """
    blocks: list[tvm.s_tir.SBlock] = []
    tvm_ffi.structural_walk(mod["main"].body, (tvm.s_tir.SBlock, blocks.append), order="post")
    structure: list[object] = [
        [[str(block.name_hint), [int(axis.iter_type) for axis in block.iter_vars]] for block in blocks],
        [[len(buffer.shape), str(buffer.dtype)] for buffer in mod["main"].params],
    ]
    if permits_tf32(mod["main"]):
        structure.append([TF32])
    return hashlib.sha256(json.dumps(structure).encode()).hexdigest()[:32]


def _canonical_names(tree: ast.Module) -> list[tuple[int, int, int, bytes]]:
    """Return where variables are and their canonical names: (line from 0, first byte, end byte, name), in order.

    Every binding is a new variable v0, v1, …, because the printer uses a name again once its scope has ended. The walk
    is not recursive, because sums of a thousand terms are as deep.
    """
    names: dict[str, bytes] = {}
    bound = 0
    places: list[tuple[int, int, int, bytes]] = []
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        stack.extend(reversed(_in_order_of_evaluation(node)))
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
            names[_name(node)] = b"v%d" % bound
            bound += 1
        if isinstance(node, ast.arg | ast.Name) and _name(node) in names:
            start = node.col_offset
            places.append((node.lineno - 1, start, start + len(_name(node).encode()), names[_name(node)]))
    return sorted(places)


def _name(node: ast.arg | ast.Name) -> str:
    return node.arg if isinstance(node, ast.arg) else node.id


def _in_order_of_evaluation(node: ast.AST) -> list[ast.AST]:
    """Return a node's children, each value before the names that it is bound to."""
    match node:
        case ast.For():
            return [node.iter, node.target, *node.body]
        case ast.Assign():
            return [node.value, *node.targets]
        case ast.AnnAssign(value=ast.expr() as value):
            return [node.annotation, value, node.target]
        case _:
            return list(ast.iter_child_nodes(node))
