"""Check the contents of a module that TVM has parsed. Imports TVM: run it in a child that may die.

A function's JSON holds everything that can be reached from it, so the checks read the JSON and let nothing pass that
is not listed. They keep a function from calling out of itself; they do not bound its memory accesses, so what is built
from it still belongs into a child with limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import tvm

from loopwright.codegen.errors import InvalidModule, UnsupportedVersion
from tuner.guard.graph import check_graph, read_graph

_MODULE_KINDS = re.compile(
    r"None|int|bool|float|str|DataType|Device|ffi\.(String|Array|Map|Shape|Tensor)|(ir|prim|tirx|s_tir|relax|target)\..+"
)

# A function of the runtime by its name, which TVM calls to derive types; this one returns the types of a call that are
# written in it, as every call of a library has it.
_ENV_FUNC = {"type": "ir.EnvFunc", "data": "tvm.relax.type.infer_by_ty_args"}

_FUNCTION_KINDS = re.compile(
    r"None|int|bool|float|str|DataType|ffi\.(String|Array|Map|Shape|Tensor)"
    r"|prim\.\w+|s_tir\.(SBlock|SBlockRealize|MatchBufferRegion)"
    r"|ir\.(Call|Op|Var|Range|IntImm|FloatImm|StringImm|GenericConst|TensorLoad|TensorRegion|Tuple|TupleGetItem)"
    r"|ir\.(Type|PrimType|StringType|TupleType|DictAttrs|Span|SequentialSpan|SourceName)"
    r"|tirx\.(PrimFunc|For|While|IfThenElse|SeqStmt|Evaluate|Bind|BufferStore|AssertStmt|AttrStmt|IterVar)"
    r"|tirx\.(Break|Continue|Return|AllocBuffer|DeclBuffer|BufferType|BufferRegionType)"
    # The type of the function itself.
    r"|relax\.(FuncType|TensorType|ShapeType|expr\.ShapeExpr)"
)

_TRACE_KINDS = re.compile(rf"{_FUNCTION_KINDS.pattern}|tirx\.IndexMap")

_OPS = re.compile(
    r"prim\.(ceil|clz|if_then_else|likely|log2|vscale)"
    r"|tirx\.(acos|acosh|asin|asinh|atan|atan2|atanh|copysign|cos|cosh|ctpop|dp4a|erf|exp|exp10|exp2|fabs|floor|fma|fmod"
    r"|hypot|isfinite|isinf|isnan|ldexp|log|log10|log1p|nearbyint|nextafter|popcount|pow|round|rsqrt|sigmoid|sin|sinh"
    r"|sqrt|tan|tanh|trunc|reinterpret|undef|q_multiply_shift|q_multiply_shift_per_axis|vectorcombine|vectorhigh"
    r"|vectorlow|selector|get_active_lane_mask|ignore_loop_partition|break_loop|continue_loop)"
)

_LLVM_CALLS = ("tirx.call_llvm_pure_intrin", "tirx.call_llvm_intrin")

# Arithmetic on values; LLVM also has system calls, software interrupts and memory transfers under its names.
_LLVM_INTRINSICS = re.compile(
    r"llvm\.(abs|bitreverse|bswap|canonicalize|ceil|copysign|cos|cosh|ctlz|ctpop|cttz|exp|exp10|exp2|fabs|floor|fma"
    r"|fmuladd|fshl|fshr|log|log10|log2|maximum|maxnum|minimum|minnum|nearbyint|pow|powi|rint|round|roundeven|sin|sinh"
    r"|smax|smin|sqrt|tan|tanh|trunc|umax|umin|[su](add|sub|shl)\.sat|vector\.reduce\.\w+)(\..+)?"
    r"|llvm\.x86\.(sse\d*|ssse3|avx\w*|fma\w*)\.(?!.*(gather|scatter|load|store|stream|mxcsr|fence|clflush))[\w.]+"
    r"|llvm\.(aarch64\.neon|arm\.neon)\.(?!ld|st|v?ld\d|v?st\d)[\w.]+"
)

_ATTRIBUTE_STATEMENTS = re.compile(r"thread_extent|virtual_thread|pragma_scope")
_PRAGMAS = frozenset(
    {"pragma_scope", "pragma_auto_unroll_max_step", "pragma_loop_partition_hint", "pragma_unroll_explicit"}
)

# MetaSchedule calls the global function that `schedule_rule` names; these are the names that TVM's own operators give.
_SCHEDULE_RULES = re.compile(r"None|conv2d_\w+|meta_schedule\.(adaptive_)?pool_\w+")

_FOREIGN_ATTRIBUTES = frozenset({"calling_conv", "external_mods", "Codegen"})


def load_module_json(text: str) -> tvm.IRModule:
    """Return the module in TVM's JSON (`tvm.ir.save_json(mod)`).

    Raises:
        UnsupportedVersion: another TVM wrote it.
        InvalidModule: not TVM's JSON, not a module, or it holds compiled code.
    """
    try:
        graph = read_graph(text)
        # Where TVM before 0.22 wrote its version; the rest of its JSON had another form, too.
        header = graph.get("metadata", graph.get("attrs"))
        version = header.get("tvm_version") if isinstance(header, dict) else None
        if version is None or version == tvm.__version__:
            kinds = {str(node["type"]) for node in graph["nodes"] if node != _ENV_FUNC}
            root = graph["nodes"][graph["root_index"]]["type"]
            check_graph(graph["nodes"])
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidModule(f"not TVM's JSON ({type(error).__name__}: {error}); send tvm.ir.save_json(mod)") from None
    if version != tvm.__version__:
        raise UnsupportedVersion(
            f"the module was written by TVM {version or 'of unknown version'}, but TVM {tvm.__version__} runs here; "
            "save it with that version, or send TVMScript"
        )
    if root != "ir.IRModule":
        raise InvalidModule(f"the JSON holds a {root}, not a module; send tvm.ir.save_json(tvm.IRModule({{...}}))")
    for kind in sorted(kinds):
        if not _MODULE_KINDS.fullmatch(kind) or kind == "ir.EnvFunc":
            raise InvalidModule(f"the module holds a {kind}; remove compiled code and functions of the runtime from it")
    try:
        return tvm.ir.load_json(text)
    except Exception as error:  # TVM raises whatever its reflection meets first.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        raise InvalidModule(f"TVM cannot load the module ({reason}); send tvm.ir.save_json(mod) unchanged") from None


def foreign_kinds(text: str) -> str:
    """Return the kinds in TVM's JSON of a part of a trace that neither functions nor index maps have, as a list."""
    try:
        nodes = read_graph(text)["nodes"]
        kinds = {str(node["type"]) for node in nodes}
        check_graph(nodes)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return "what is not TVM's JSON"
    return ", ".join(sorted(kind for kind in kinds if not _TRACE_KINDS.fullmatch(kind)))


def check_callouts(func: tvm.tirx.PrimFunc) -> list[str]:
    """Return each part of the function that calls external code, or contains code or pointers, once."""
    graph = json.loads(tvm.ir.save_json(func))
    return list(dict.fromkeys(_findings(graph["nodes"])))


def _findings(nodes: list[dict[str, Any]]) -> Iterator[str]:
    for node in nodes:
        kind: str = node["type"]
        data: Any = node.get("data")
        if kind == "ir.PointerType" or (kind == "ir.PrimType" and data["dtype"] == "handle"):
            yield "uses raw pointers (handles) instead of buffers"
        elif not _FUNCTION_KINDS.fullmatch(kind):
            yield f"holds a {kind}, which a function to tune may not hold"
        elif kind == "ir.Call":
            yield from _call_findings(nodes, data)
        elif kind == "tirx.AttrStmt" and not _ATTRIBUTE_STATEMENTS.fullmatch(_text(nodes, data["attr_key"])):
            yield f"has the attribute statement `{_text(nodes, data['attr_key'])}`"
        elif kind == "ffi.String" and data.startswith("pragma_") and data not in _PRAGMAS:
            yield f"has the pragma `{data}`"
        elif kind == "ffi.Map":
            yield from _map_findings(nodes, data)


def _call_findings(nodes: list[dict[str, Any]], call: dict[str, Any]) -> Iterator[str]:
    op = nodes[call["op"]]
    if op["type"] != "ir.Op":
        yield "calls another function"
    elif op["data"] in _LLVM_CALLS:
        number = nodes[nodes[nodes[call["args"]]["data"][0]]["data"]["value"]]["data"]
        name = str(tvm.target.codegen.llvm_get_intrinsic_name(number))
        if not _LLVM_INTRINSICS.fullmatch(name):
            yield f"calls the LLVM intrinsic `{name}`"
    elif not _OPS.fullmatch(op["data"]):
        names = [_text(nodes, nodes[i]["data"]["value"]) for i in nodes[call["args"]]["data"] if _is_string(nodes[i])]
        of = f" of {', '.join(repr(name) for name in names)}" if names else ""
        yield f"calls `{op['data']}`{of}"


def _map_findings(nodes: list[dict[str, Any]], items: list[int]) -> Iterator[str]:
    for key, value in zip(items[::2], items[1::2], strict=True):
        name, rule = _text(nodes, key), _text(nodes, value)
        if name in _FOREIGN_ATTRIBUTES:
            yield f"has the attribute `{name}`"
        elif name == "schedule_rule" and not _SCHEDULE_RULES.fullmatch(rule):
            yield f"has the schedule rule `{rule}`, a function of the runtime"


def _is_string(node: dict[str, Any]) -> bool:
    return node["type"] == "ir.StringImm"


def _text(nodes: list[dict[str, Any]], index: int) -> str:
    return str(nodes[index].get("data"))
