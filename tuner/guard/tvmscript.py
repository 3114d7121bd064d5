"""Check a script before TVM's parser evaluates it as Python: only a small, listed language is allowed.

The parser looks names up among Python's builtins when the text does not bind them, evaluates every expression, and
evaluates strings too where they stand for shapes. So each node of the tree must be of a listed kind, each name bound
by the text or listed in `dialect`, and each string a plain word or itself an expression of this language.
"""

from __future__ import annotations

import ast

from loopwright.codegen.errors import InvalidModule
from tuner.guard.constants import check_metadata
from tuner.guard.dialect import DECORATORS
from tuner.guard.expressions import AMBIENT, Expressions, dotted, kind, shown
from tuner.guard.source import TOO_DEEP, refuse, without_imports


def check_tvmscript(source: str) -> str:
    """Return the text for `codegen.script.parse_script`: as given, with the import lines blanked (line numbers stay).

    It holds one `@I.ir_module` class, or one `@T.prim_func` or `@R.function` function. Touches no TVM; on text of
    `MAX_CHARS` it takes seconds and hundreds of megabytes, so run it where that does no harm.

    Raises:
        InvalidModule: with the line, what is not allowed, and what to write instead.
    """
    text, tree = without_imports(source)
    try:
        _Checker(tree).module(tree)
    except RecursionError:
        raise InvalidModule(TOO_DEEP) from None
    return text


class _Checker(Expressions):
    """Checks definitions and statements."""

    # ---- what stands outside functions

    def module(self, tree: ast.Module) -> None:
        definitions = 0
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self._class(node)
                definitions += 1
            elif isinstance(node, ast.FunctionDef):
                self._function(node, "T.prim_func", "R.function")
                definitions += 1
            elif isinstance(node, ast.Assign):
                self._assignment(node)
            elif not _is_docstring(node):
                refuse(node.lineno, f"{kind(node)} outside the module", "keep the decorated class or function only")
        if definitions != 1:
            raise InvalidModule(
                f"the script defines {definitions} modules or functions; "
                "send one class decorated by @I.ir_module, or one function decorated by @T.prim_func(s_tir=True)"
            )

    def _assignment(self, node: ast.Assign) -> None:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="TypeVar"), args=[ast.Constant(value=text)], keywords=[]),
            ) if name == text:
                self._bind(name, node)
            case ast.Assign(targets=[ast.Name(id="metadata")]) if (
                self._constants is None and self._lookup("tvm") is None
            ):
                self._constants = check_metadata(node)
            case _:
                refuse(
                    node.lineno,
                    "an assignment outside the module",
                    'only `n = TypeVar("n")` and the `metadata` that TVM prints, once, may stand there',
                )

    def _class(self, node: ast.ClassDef) -> None:
        self._decorator(node, "I.ir_module", "tvm.script.ir_module")
        if node.bases or node.keywords:
            refuse(node.lineno, "a base class", "write `class Module:`; Python functions in modules are not taken")
        self._no_type_parameters(node)
        self._functions = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        with self._scope():
            self._bind(node.name, node, is_module=True)
            for item in node.body:
                match item:
                    case ast.FunctionDef():
                        self._function(item, "T.prim_func", "R.function")
                    case ast.Expr(value=ast.Call(func=func) as call) if dotted(func) in (
                        "I.module_attrs",
                        "I.module_global_infos",
                    ):
                        self._expr(call)
                    case ast.Pass():
                        pass
                    case _ if not _is_docstring(item):
                        refuse(item.lineno, f"{kind(item)} in a module", "keep functions and I.module_attrs(…) only")

    def _function(self, node: ast.FunctionDef, *decorators: str) -> None:
        decorator = self._decorator(node, *decorators)
        self._s_tir = _is_s_tir(node.decorator_list[0])
        self._no_type_parameters(node)
        args = node.args
        if args.posonlyargs or args.vararg or args.kwonlyargs or args.kwarg or args.defaults:
            refuse(node.lineno, "a default value, `*`, `**` or `/` among parameters", "write plain typed parameters")
        if node.name.startswith("_"):
            refuse(node.lineno, f"a function named `{node.name}`", "begin the name with a letter")
        # The parser evaluates annotations while parameters are half bound, so none of them counts as bound yet.
        for annotation in [*(arg.annotation for arg in args.args), node.returns]:
            if annotation is not None:
                self._expr(annotation)
        with self._scope():
            for arg in args.args:
                self._bind(arg.arg, arg)
            self._body(node.body, relax=decorator == "R.function")

    def _decorator(self, node: ast.ClassDef | ast.FunctionDef, *allowed: str) -> str:
        wanted = f"write one of {', '.join('@' + name for name in allowed)}"
        if len(node.decorator_list) != 1:
            refuse(node.lineno, f"`{node.name}` has {len(node.decorator_list)} decorators", wanted)
        decorator = node.decorator_list[0]
        func, keywords = decorator, []
        if isinstance(decorator, ast.Call):
            func, keywords = decorator.func, decorator.keywords
        name = dotted(func)
        if name is None or name not in allowed or (isinstance(decorator, ast.Call) and decorator.args):
            refuse(decorator.lineno, f"the decorator `@{shown(decorator)}`", wanted)
        for keyword in keywords:
            flag = isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, bool)
            if not flag or keyword.arg not in DECORATORS[name]:
                refuse(decorator.lineno, f"`{shown(keyword)}` in a decorator", "write options as s_tir=True")
        return name

    @staticmethod
    def _no_type_parameters(node: ast.ClassDef | ast.FunctionDef) -> None:
        if getattr(node, "type_params", None):
            refuse(node.lineno, "type parameters in brackets", 'write `n = TypeVar("n")` before the definition')

    # ---- statements

    def _body(self, body: list[ast.stmt], relax: bool) -> None:
        for node in body:
            with self._deeper(node):
                self._stmt(node, relax)

    def _stmt(self, node: ast.stmt, relax: bool) -> None:
        match node:
            case ast.Expr(value=value):
                if not _is_docstring(node):
                    self._expr(value)
            case ast.Assign(targets=[target], value=value):
                self._expr(value)
                is_module = isinstance(value, ast.Name) and self._lookup(value.id) is True
                self._target(target, is_module=is_module)
            case ast.AnnAssign(target=ast.Name() as target, annotation=annotation, value=value):
                self._expr(annotation)
                if value is not None:
                    self._expr(value)
                self._target(target)
            case ast.AugAssign(target=ast.Name() | ast.Subscript() as target, op=op, value=value):
                self._operator(op, target, value, node)
                self._target(target)
            case ast.For(target=target, iter=iterator, body=body, orelse=[]):
                if isinstance(iterator, ast.Call) and dotted(iterator.func) == "range" and not self._lookup("range"):
                    self._arguments(iterator, "range")
                else:
                    self._expr(iterator)
                with self._scope():
                    self._target(target)
                    self._body(body, relax)
            case ast.While(test=test, body=body, orelse=[]):
                self._expr(test)
                with self._scope():
                    self._body(body, relax)
            case ast.If(test=test, body=body, orelse=orelse):
                self._expr(test)
                for branch in (body, orelse):
                    with self._scope():
                        self._body(branch, relax)
            case ast.With():
                self._with(node, relax)
            case ast.Assert(test=test, msg=message):
                self._expr(test)
                if message is not None:
                    self._data(message)
            case ast.Return(value=value):
                if value is not None:
                    self._expr(value)
            case ast.FunctionDef() if relax:
                self._function(node, "R.function")
                self._bind(node.name, node)
            case ast.Pass() | ast.Break() | ast.Continue():
                pass
            case _:
                refuse(node.lineno, f"{kind(node)} is not TVMScript", "send the function as `mod.script()` prints it")

    def _with(self, node: ast.With, relax: bool) -> None:
        self._outputs = []
        with self._scope():
            for item in node.items:
                self._expr(item.context_expr)
                if item.optional_vars is not None:
                    self._target(item.optional_vars)
            self._body(node.body, relax)
        if _called(node.items[0].context_expr) == "R.dataflow":
            # The parser binds an output to the name that its variable has, which need not be the name written.
            for name in set(self._outputs) - AMBIENT:
                self._bind(name, node)

    def _target(self, node: ast.expr, is_module: bool = False) -> None:
        match node:
            case ast.Name(id=name):
                self._bind(name, node, is_module)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                with self._deeper(node):
                    for element in elements:
                        self._target(element)
            case ast.Subscript():
                self._expr(node)
            case _:
                refuse(node.lineno, f"an assignment to `{shown(node)}`", "assign to names or to buffer elements")


def _called(node: ast.expr) -> str | None:
    return dotted(node.func) if isinstance(node, ast.Call) else None


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_s_tir(decorator: ast.expr) -> bool:
    """Return whether `s_tir=True` stands in the decorator, whose options are constants."""
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(k.arg == "s_tir" and isinstance(k.value, ast.Constant) and k.value.value is True for k in keywords)
