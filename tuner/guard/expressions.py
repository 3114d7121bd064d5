"""Check the expressions of a submitted script. This file does not use TVM."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from loopwright.codegen.errors import InvalidModule
from tuner.guard import constants, dialect
from tuner.guard.source import parse, refuse

MAX_DEPTH = 100
"""Nesting of statements and expressions: a printed Winograd constant matrix has 40."""

# Names that the parser resolves when the text has not bound them. They may be bound (`input` is a common parameter)
# but used only where they surely are.
AMBIENT = frozenset(dir(builtins)) | {"tvm", "I", "ir", "T", "tir", "R", "relax", "Tx", "tirx", "Axis", "TypeVar"}

# No parenthesis or bracket, so nothing is called if the parser evaluates it; no `*` or `<<`, so nothing grows.
_WORD = re.compile(r"(?!.*\.\s*_)(?!.*\blambda\b)[\w .,:+\-/>=]*", re.ASCII)

_OPERATORS = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
    *(ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor),
)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_LITERALS = (ast.Tuple, ast.List, ast.Dict)
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1


class Expressions:
    """Checks expressions in the parser's order, in the parser's scopes: name -> whether it is the module itself."""

    def __init__(self, tree: ast.Module) -> None:
        self._scopes: list[dict[str, bool]] = [{}]
        self._functions: set[str] = set()
        self._outputs: list[str] = []
        self._depth = 0
        self._in_string = False
        self._s_tir = False
        self._constants: dict[str, int] | None = None
        self._bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self._bound |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        self._bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef | ast.FunctionDef)}

    def _expr(self, node: ast.expr) -> None:
        with self._deeper(node):
            match node:
                case ast.Constant():
                    self._constant(node)
                case ast.Name():
                    self._name(node)
                case ast.Attribute():
                    self._attribute(node)
                case ast.Call():
                    self._call(node)
                case ast.BinOp(left=left, op=op, right=right):
                    self._operator(op, left, right, node)
                case ast.UnaryOp(operand=operand):
                    self._expr(operand)
                case ast.BoolOp(values=values):
                    self._all(values)
                case ast.Compare(left=left, ops=ops, comparators=comparators):
                    if not all(isinstance(op, _COMPARISONS) for op in ops):
                        refuse(node.lineno, "`in` or `is`", "compare by ==, !=, <, <=, > or >=")
                    self._all([left, *comparators])
                case ast.IfExp(test=test, body=body, orelse=orelse):
                    self._all([test, body, orelse])
                case ast.Tuple(elts=elements) | ast.List(elts=elements):
                    self._all(elements)
                case ast.Dict(keys=keys, values=values):
                    self._all([*self._keys(node, keys), *values])
                case ast.Subscript(value=ast.Subscript(value=ast.Name(id="metadata"))) if (
                    self._lookup("metadata") is None
                ):
                    self._constant_of_metadata(node)
                case ast.Subscript(value=value, slice=index):
                    self._base(value)
                    self._all(index.elts if isinstance(index, ast.Tuple) else [index], self._index)
                case _:
                    refuse(node.lineno, f"{kind(node)} is not TVMScript", "write T. or R. operations on named values")

    def _all(self, nodes: list[ast.expr], check: Callable[[ast.expr], None] | None = None) -> None:
        for node in nodes:
            (check or self._expr)(node)

    def _constant_of_metadata(self, node: ast.Subscript) -> None:
        """``metadata["ir.GenericConst"][i]``, as TVM prints it."""
        match node:
            case ast.Subscript(
                value=ast.Subscript(slice=ast.Constant(value=str(key))),
                slice=ast.Constant(value=int(index)),
            ) if 0 <= index < (self._constants or {}).get(key, 0):
                pass
            case _:
                refuse(node.lineno, f"`{shown(node)}`, a constant that is missing", constants.SEND)

    def _index(self, node: ast.expr) -> None:
        if isinstance(node, ast.Slice):
            self._all([part for part in (node.lower, node.upper, node.step) if part is not None])
        else:
            self._expr(node)

    def _base(self, node: ast.expr) -> None:
        """Return what stands before `[` or `.`: not a literal, whose strings could be taken out again."""
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            refuse(node.lineno, f"`{shown(node)}` is taken apart", "write its parts where they are used")
        self._expr(node)

    @staticmethod
    def _keys(node: ast.Dict, keys: list[ast.expr | None]) -> list[ast.expr]:
        if None in keys:
            refuse(node.lineno, "`**` in a dictionary", "write its items")
        return [key for key in keys if key is not None]

    def _operator(self, op: ast.operator, left: ast.expr, right: ast.expr, node: ast.expr | ast.stmt) -> None:
        if not isinstance(op, _OPERATORS):
            refuse(node.lineno, f"the operator {kind(op)}", "write T.pow(a, b) or R.power(a, b), R.matmul(a, b)")
        for operand in (left, right):
            if isinstance(operand, _LITERALS) or (isinstance(operand, ast.Constant) and isinstance(operand.value, str)):
                refuse(node.lineno, "arithmetic on a string or a list", "write the result")
        if isinstance(op, ast.LShift) and isinstance(right, ast.Constant) and not 0 <= _number(right.value) < 64:
            refuse(node.lineno, "a shift by more than 63 bits", "write the number")
        self._all([left, right])

    def _constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, str):
            self._string(node, value)
        elif isinstance(value, int) and not _INT64_MIN <= value <= _UINT64_MAX:
            refuse(node.lineno, "an integer beyond 64 bits", "write one that fits its type")
        elif not (value is None or isinstance(value, bool | int | float)):
            refuse(node.lineno, f"`{shown(node)}` as a constant", "write numbers, strings, True, False or None")

    def _string(self, node: ast.Constant, value: str) -> None:
        if _WORD.fullmatch(value):
            return
        instead = "write a word, or a shape such as 'n * 4'; longer text may stand in attributes and assertions only"
        if self._in_string:
            refuse(node.lineno, f"the string {shown(node)} within a string", instead)
        try:
            body = parse(value).body
        except InvalidModule:
            body = []
        if len(body) != 1 or not isinstance(body[0], ast.Expr):
            refuse(node.lineno, f"the string {shown(node)}", instead)
        self._in_string = True
        try:
            self._expr(body[0].value)
        except InvalidModule as error:
            reason = str(error).partition(": ")[2]
            raise InvalidModule(f"line {node.lineno}: in the string {shown(node)}: {reason}") from None
        finally:
            self._in_string = False

    def _data(self, node: ast.expr) -> None:
        """Literals that are only stored: any string will do."""
        match node:
            case ast.Constant(value="tir.noalias"):
                refuse(node.lineno, "`tir.noalias` is TVMScript of an earlier TVM", "write tirx.noalias")
            case ast.Constant(value=str()):
                pass
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                with self._deeper(node):
                    self._all(elements, self._data)
            case ast.Dict(keys=keys, values=values):
                with self._deeper(node):
                    self._all([*self._keys(node, keys), *values], self._data)
            case _:
                self._expr(node)

    def _name(self, node: ast.Name) -> None:
        name = node.id
        if self._lookup(name) is not None:
            return
        if name in ("tir", "ir", "relax", "tirx"):
            instead = "write T, R or I, after `from tvm.script import ir as I, tirx as T, relax as R`"
            refuse(node.lineno, f"`{name}`", instead)
        if name == "metadata":
            refuse(node.lineno, "`metadata` other than its constants by number", constants.SEND)
        if name in AMBIENT or name.startswith("__"):
            refuse(node.lineno, f"`{name}` is not bound here", "use the module's own names, and others than Python's")
        if name not in self._bound and not self._in_string:
            refuse(node.lineno, f"`{name}` is not bound", "bind it before, or write its value")

    def _attribute(self, node: ast.Attribute) -> None:
        path = dotted(node)
        root = path.partition(".")[0] if path else ""
        if path and root in ("T", "R", "I") and self._lookup(root) is None:
            self._dialect_name(path, node)
        elif path and self._lookup(root) is True and path.count(".") == 1:
            if node.attr not in self._functions:
                refuse(node.lineno, f"`{path}` is not a function of this module", "define it in the class")
        else:
            self._base(node.value)
            if node.attr not in dialect.ATTRIBUTES:
                known = ", ".join(sorted(dialect.ATTRIBUTES))
                refuse(node.lineno, f"the attribute `.{node.attr}`", f"of values, use one of {known}")

    def _dialect_name(self, path: str, node: ast.Attribute) -> None:
        namespace, _, name = path.rpartition(".")
        if path == "T.sblock" and not self._s_tir:
            refuse(node.lineno, "`T.sblock` in a function that cannot be scheduled", "write @T.prim_func(s_tir=True)")
        if name in dialect.NAMESPACES.get(namespace, ()):
            return
        if path in dialect.OLD_WORDS:
            refuse(node.lineno, f"`{path}` is TVMScript of an earlier TVM", f"write {dialect.OLD_WORDS[path]}")
        if name in dialect.CALLING_OUT:
            refuse(node.lineno, f"`{path}` calls out of the program", "write the computation in TVMScript itself")
        refuse(node.lineno, f"`{path}` is not accepted in a script", "if TVM knows it, send the module as TVM JSON")

    def _call(self, node: ast.Call) -> None:
        func = node.func
        if not isinstance(func, ast.Name | ast.Attribute) or (isinstance(func, ast.Name) and func.id in AMBIENT):
            refuse(node.lineno, f"a call of `{shown(func)}`", "call T., R. or the module's functions by name")
        self._expr(func)
        name = dotted(func) or ""
        self._arguments(node, name if self._lookup(name.partition(".")[0]) is None else "")

    def _arguments(self, node: ast.Call, name: str) -> None:
        if name == "R.Callable" and (len(node.args) > 3 or any(k.arg == "derive_func" for k in node.keywords)):
            refuse(node.lineno, "`derive_func`, which calls a global function", "give the return type as `ret`")
        if name == "R.output":
            self._outputs += [arg.id for arg in node.args if isinstance(arg, ast.Name)]
        check = self._data if name in dialect.DATA_CALLS else self._expr
        self._all(node.args, check)
        for keyword in node.keywords:
            if keyword.arg is None:
                refuse(node.lineno, "`**` in a call", "write its items")
            if keyword.arg in dialect.OLD_WORDS:
                new = dialect.OLD_WORDS[keyword.arg]
                refuse(node.lineno, f"`{keyword.arg}=` is TVMScript of an earlier TVM", f"write {new}=")
            (self._data if keyword.arg == "annotations" else check)(keyword.value)

    # ---- scopes

    def _lookup(self, name: str) -> bool | None:
        """None: not bound here; True: bound to the module; False: bound to a value."""
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _bind(self, name: str, node: ast.expr | ast.stmt | ast.arg, is_module: bool = False) -> None:
        if name == "T" or name.startswith("__"):
            refuse(node.lineno, f"`{name}` as the name of a value", "choose another name")
        self._scopes[-1][name] = is_module

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self._scopes.append({})
        yield
        self._scopes.pop()

    @contextmanager
    def _deeper(self, node: ast.expr | ast.stmt) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            refuse(node.lineno, f"more than {MAX_DEPTH} levels of nesting", "bind parts to names, or send TVM JSON")
        yield
        self._depth -= 1


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` for a chain of attributes on a name; None for anything else."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1


def kind(node: ast.AST) -> str:
    return f"`{type(node).__name__}`"


def shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else text[:57] + "…"
