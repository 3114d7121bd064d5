"""What must not reach TVM's parser, each with a message that names the line."""

from __future__ import annotations

import ast

import pytest

from loopwright.codegen.errors import InvalidModule, UnsupportedVersion
from tests.unit.guard.scripts import MATMUL, with_constants
from tuner.guard.expressions import MAX_DEPTH
from tuner.guard.source import MAX_CHARS
from tuner.guard.tvmscript import check_tvmscript

EXPRESSIONS = {
    "loader": "T.__loader__.get_data.__globals__['sys'].modules['os'].system('true')",
    "dunder on a value": "A.__class__.__mro__",
    "dunder on a number": "(1).__class__",
    "unicode dunder": "T.__\uff4coader__",
    "fullwidth builtin": "\uff45val('1')",
    "builtin call": "__import__('os')",
    "builtin value": "eval",
    "environment": "T.os",
    "tvm": "tvm.support.libinfo()",
    "parser": "__current_script_parser__",
    "submodule": "T.builder.ir",
    "cuda source": "T.cuda.func_call('f', source_code='x')",
    "assembly": "T.ptx.ld(A.data)",
    "packed call": "T.call_packed('os.system', 'true')",
    "extern call": "T.call_extern('int32', 'system', 'true')",
    "any intrinsic": "T.call_intrin('int32', 'tirx.call_extern', 'system')",
    "python kernel": "T.call_kernel('x.cu', [], [])",
    "emit_te": "R.emit_te(A, A)",
    "python function": "R.call_py_func('f', A)",
    "namespace as a value": "T",
    "lambda": "(lambda: 1)()",
    "comprehension": "[x for x in A]",
    "generator": "T.min(*(x for x in A))",
    "walrus": "(x := 1)",
    "f-string": "f'{A}'",
    "nested f-string": "f'{f\"{open}\"}'",
    "star": "T.min(*A)",
    "double star": "T.min(**A)",
    "double star in dictionary": "{**A}",
    "set": "{1, 2}",
    "await": "await A",
    "yield": "(yield)",
    "power": "9 ** 9 ** 9",
    "shift": "1 << 10000000000",
    "huge integer": "0x" + "f" * 100,
    "string times": "'a' * 1000000000",
    "string format": "'%s' % A",
    "list times": "[0] * 1000000000",
    "method of a string": "'{0.__class__}'.format(A)",
    "string out of a dictionary": "{'a': 'b'}['a']",
    "string out of a tuple": "('a', 'b')[0]",
    "shape that calls": "R.Tensor((\"n + __import__('os').system('true')\",), 'float32')",
    "shape that chains": 'R.Shape(["T.__loader__"])',
    "shape in a value": "T.meta_var(\"__import__('os').system('true')\")",
    "shape with lambda": "R.Shape(['lambda: 0'])",
    "shape with a string": "R.Shape([\"T.min('open()', n)\"])",
    "shape with power": "R.Shape(['9**9**9'])",
    "shape twice": "T.Buffer(('n', \"exec('1')\"), 'float32')",
    "derive function": "R.Callable(derive_func='ffi.function')",
    "derive by position": "R.Callable(None, None, True, 'ffi.function')",
    "bytes": "b'x'",
    "complex": "1j",
    "ellipsis": "...",
    "membership": "1 in A",
    "identity": "A is None",
    "matmul": "A @ A",
    "unbound": "undefined_name",
    "metadata": "metadata['relax.expr.Constant'][0]",
    "called subscript": "A[0](1)",
    "called builtin": "print('x')",
    "decorator as a value": "T.prim_func(s_tir=True)",
}
STATEMENTS = {
    "import": "import os",
    "import from": "from os import system",
    "delete": "del A",
    "global": "global A",
    "try": "try:\n        pass\n    except ValueError:\n        pass",
    "raise": "raise ValueError",
    "async": "async def f():\n        pass",
    "class": "class B:\n        pass",
    "inline": "@T.inline\n    def f():\n        pass",
    "plain function": "def f():\n        pass",
    "attribute target": "A.data = A",
    "two targets": "x = y = A",
    "bind T": "T = A",
    "bind dunder": "__builtins__ = A",
    "late binding": "A[0] = exec\n    exec = A[0]",
    "binding in a scope that ended": "for exec in range(4):\n        pass\n    A[exec] = A[0]",
    "call of a bound builtin": "exec = A[0]\n    exec('import os')",
    "builtin as annotation": "x: breakpoint = A[0]",
    "loop over a value": "for i in A, __import__('os'):\n        pass",
    "for-else": "for i in range(4):\n        pass\n    else:\n        pass",
    "match": "match A:\n        case _:\n            pass",
    "context": "with open('x'):\n        pass",
    "star target": "a, *b = A",
}
MODULES = {
    "two functions": MATMUL + "\n" + MATMUL.partition("\n\n")[2],
    "nothing": "",
    "prose": "tune this please",
    "statement before": "print('x')\n" + MATMUL,
    "assignment before": "x = 1\n" + MATMUL,
    "type variable of another name": "n = TypeVar('m')\n" + MATMUL,
    "main guard": MATMUL + "\nif __name__ == '__main__':\n    pass\n",
    "import of os": "import os\n" + MATMUL,
    "import of numpy": "import numpy as np\n" + MATMUL,
    "other names": "from tvm.script import relax as T\n" + MATMUL,
    "relative import": "from .script import tirx as T\n" + MATMUL,
    "import and statement": "import tvm; print('x')\n" + MATMUL,
    "default": MATMUL.replace('B: T.Buffer((128, 128), "float32")', "B: T.int32 = print('x')"),
    "keyword parameters": MATMUL.replace("def main(", "def main(*, "),
    "var parameters": MATMUL.replace("def main(", "def main(*args, "),
    "two decorators": MATMUL.replace("@T.", "@print\n@T.", 1),
    "other decorator": MATMUL.replace("@T.prim_func(s_tir=True)", "@print"),
    "macro": MATMUL.replace("@T.prim_func(s_tir=True)", "@T.macro"),
    "computed option": MATMUL.replace("s_tir=True)", "s_tir=print('x'))"),
    "option by position": MATMUL.replace("(s_tir=True)", "(print)"),
    "base class": "@I.ir_module\nclass Module(BasePyModule):\n    pass\n",
    "metaclass": "@I.ir_module\nclass Module(metaclass=print):\n    pass\n",
    "python function": "@I.ir_module\nclass Module:\n    @I.pyfunc\n    def f(x):\n        pass\n",
    "assignment in class": "@I.ir_module\nclass Module:\n    f = R.ExternFunc('system')\n",
    "call in class": "@I.ir_module\nclass Module:\n    print('x')\n",
    "nested class": "@I.ir_module\nclass Module:\n    @I.ir_module\n    class Inner:\n        pass\n",
    "dunder function": "@I.ir_module\nclass Module:\n    @T.prim_func\n    def __init__(a: T.int32):\n        pass\n",
    "unknown function": "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Any):\n        return M.g(x)\n",
    "null byte": MATMUL + "\0",
    "surrogate": MATMUL + "# \ud800",
    "deep brackets": "x = " + "(" * 5000 + ")" * 5000,
    "deep unary": "x = " + "-" * 100_000 + "1",
    "deep attributes": "x = a" + ".a" * 100_000,
    "deep blocks": "\n".join(" " * i + "if x:" for i in range(99)) + "\n" + " " * 99 + "pass",
    "long": "#" * (MAX_CHARS + 1),
    "huge decimal": "x = " + "9" * 5000,
}


def _function(body: str) -> str:
    return f"@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((4,), 'float32')):\n    {body}\n"


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
@pytest.mark.parametrize(
    "place",
    ["A[0] = {}", "for i in range({}):\n        A[i] = A[0]", "x: {} = A[0]", "T.func_attr({{'a': {}}})", "return {}"],
)
def test_expression_is_refused_anywhere(expression: str, place: str) -> None:
    with pytest.raises(InvalidModule, match=r"^line 3: .+; .+"):
        check_tvmscript(_function(place.format(expression)))


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expression_is_refused_in_the_signature(expression: str) -> None:
    with pytest.raises(InvalidModule, match=r"^line 2: .+; .+"):
        check_tvmscript(f"@R.function\ndef main(A: {expression}) -> R.Tensor:\n    return A\n")


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_statement_is_refused(statement: str) -> None:
    with pytest.raises(InvalidModule, match=r"^line \d+: .+; .+"):
        check_tvmscript(_function(statement))


@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
def test_module_is_refused(text: str) -> None:
    with pytest.raises(InvalidModule):
        check_tvmscript(text)


METADATA = with_constants().script(show_meta=True)
LOADED = METADATA[: METADATA.index("\n# from")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (METADATA.replace(LOADED, ""), r"metadata\['ir.GenericConst'\]\[0\]`, a constant that is missing"),
        (METADATA.replace('GenericConst"][1]', 'GenericConst"][2]'), "is missing; print the module with"),
        (METADATA.replace('["ir.GenericConst"][1]', '["relax.expr.Constant"][1]'), "is missing"),
        (METADATA.replace('["ir.GenericConst"][1]', '["ir.GenericConst"][-1]'), "is missing"),
        (METADATA.replace('["ir.GenericConst"][1]', '["ir.GenericConst"]'), "other than its constants by number"),
        (METADATA.replace('metadata["ir.GenericConst"][1]', "metadata"), "other than its constants by number"),
        (METADATA.replace("tvm.ir.load_json", "tvm.runtime.load_module"), "is not `tvm.ir.load_json` of a string"),
        (METADATA.replace(LOADED, 'metadata = tvm.ir.load_json("{}", print)'), "is not `tvm.ir.load_json` of a string"),
        (METADATA.replace(LOADED, 'metadata = tvm.ir.load_json("{}")'), "without TVM's JSON of constants"),
        (METADATA.replace(LOADED, 'metadata = tvm.ir.load_json("[]")'), "without TVM's JSON of constants"),
        (METADATA.replace('"ffi.Tensor\\"', '"ffi.Module\\"'), "with a ffi.Module, where constants are taken"),
        (METADATA.replace('"relax.TensorType\\"', '"ir.EnvFunc\\"'), "with a ir.EnvFunc"),
        (f"{LOADED}\n{METADATA}", "once, may stand there"),
        (f'tvm = TypeVar("tvm")\n{METADATA}', "once, may stand there"),
    ],
)
def test_metadata_is_refused_unless_it_has_the_constants_and_nothing_else(text: str, message: str) -> None:
    assert text != METADATA
    with pytest.raises((InvalidModule, UnsupportedVersion), match=message):
        check_tvmscript(text)


def test_constants_of_another_version_of_tvm_are_refused() -> None:
    with pytest.raises(UnsupportedVersion, match=r"^line 1: .*0\.19\.0"):
        check_tvmscript(METADATA.replace("0.27.0.post1", "0.19.0"))


def test_nesting_is_limited_before_the_parser_sees_it() -> None:
    def nested(depth: int) -> str:
        return _function("A[0] = " + "T.exp(" * depth + "A[1]" + ")" * depth)

    check_tvmscript(nested(MAX_DEPTH - 10))
    with pytest.raises(InvalidModule, match="levels of nesting"):
        check_tvmscript(nested(MAX_DEPTH + 10))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("from tvm.script import tir as T\n" + MATMUL, "import tirx as T"),
        ("import tvm\nfrom tvm.script.parser import tir as T\n", "import tirx as T"),
        (MATMUL.replace("T.sblock(", "T.block("), "T.sblock"),
        (MATMUL.replace("tirx.noalias", "tir.noalias"), "tirx.noalias"),
        (MATMUL.replace("(s_tir=True)", ""), "s_tir=True"),
        ("@R.function\ndef f(x: R.Tensor):\n    return R.call_tir(x, x, out_sinfo=R.Tensor)\n", "out_ty="),
        (_function("tir.evaluate(0)"), "tirx as T"),
    ],
)
def test_old_dialect_is_named_with_its_new_word(text: str, word: str) -> None:
    with pytest.raises(InvalidModule, match=word):
        check_tvmscript(text)


def test_comments_and_cookies_change_nothing() -> None:
    text = "# -*- coding: utf-7 -*-\n# type: ignore\n" + MATMUL.replace("0)\n", "0)  # type: __import__('os')\n")
    cleaned = check_tvmscript(text)
    assert ast.dump(ast.parse(cleaned)) == ast.dump(ast.parse(check_tvmscript(MATMUL)))
