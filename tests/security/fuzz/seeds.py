"""What is mutated: small programs of many kinds as scripts and as TVM's JSON, traces, and records."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.s_tir.meta_schedule.database import Workload

from loopwright.codegen.serialization import module_to_json, plain_json, trace_to_list
from loopwright.codegen.target import target_from
from loopwright.frontends.dialect import translate
from tests.support import convolution_programs as convolutions
from tests.support import programs, rule_programs
from tests.support.played_fleet import TARGET
from tests.support.tuner_programs import add_one_script, mlp
from tuner.space.builtin import builtin_space
from tuner.workload import tensor_args

_TRACES_EACH = 2

GATHER = """\
@T.prim_func(s_tir=True)
def gather(A: T.Buffer((16, 4), "float32"), I: T.Buffer((8,), "int64"), C: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[0:16, vj], I[vi])
            C[vi, vj] = A[T.max(T.min(I[vi], T.int64(15)), T.int64(0)), vj]
"""

RELAX = """\
@I.ir_module
class Module:
    I.module_attrs({"name": "a (b)"})

    @T.prim_func(private=True, s_tir=True)
    def double(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.sblock("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.if_then_else(x[vi, vj] < T.float32(0), T.exp(x[vi, vj]), x[vi, vj] * T.float32(2))

    @R.function
    def main(input: R.Tensor((4, 8), dtype="float32")) -> R.Tensor((4, 8), dtype="float32"):
        cls = Module
        with R.dataflow():
            lv = R.nn.softmax(input, axis=1)
            lv1 = R.call_tir(cls.double, (lv,), out_ty=R.Tensor((4, 8), dtype="float32"))
            gv: R.Tensor((4, 8), dtype="float32") = R.add(lv1, R.const(1.5, "float32"))
            R.output(gv)
        return gv
"""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A workload, and traces that apply to it (``[instructions, decisions]`` each)."""

    module_json: str
    traces: tuple[list[Any], ...]
    workload_line: list[Any]
    """As TVM's JSONDatabase writes it."""
    args: list[list[Any]]
    """Likewise: ``["TENSOR", dtype, shape]`` each."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """``modules`` are texts of TVM's JSON."""

    scripts: tuple[str, ...]
    modules: tuple[str, ...]
    scheduled: tuple[Scheduled, ...]


def make_seeds() -> Seeds:
    """Return the same seeds at each call."""
    functions = (
        rule_programs.product(4, 8, 4),
        rule_programs.byte_product(4, 8, 4),
        rule_programs.softmax(4, 8),
        rule_programs.layer_norm(4, 8),
        rule_programs.attention(2, 4, 4, 4),
        convolutions.conv_nhwc(6, 2, 4, 3),
        convolutions.depthwise_nchw(6, 4, 3, 1),
        convolutions.pool(1, 6, 6, 2, window=2, stride=2, kind="max", layout="NHWC"),
    )
    parsed = tvm.IRModule({"main": tvm.script.from_source(GATHER)})
    models = (mlp(2), mlp(1, batch=tirx.Var("n", "int64")), *_models())
    scripts = (
        programs.product(4, 8, 4),
        programs.product_relu(4),
        programs.SYMBOLIC,
        programs.TUTORIAL,
        programs.CALLS_OUT,
        programs.long_chain(2, 4),
        add_one_script(),
        GATHER,
        RELAX,
        *(mod.script() for mod in functions[2:6]),
        models[0].script(),
        models[3].script(show_meta=True),
        translate(programs.NAMED_CALLS).text,
        programs.LIBRARY_ONLY,
    )
    return Seeds(
        scripts=scripts,
        modules=tuple(module_to_json(mod) for mod in (*functions, parsed, *models)),
        scheduled=tuple(_scheduled(mod) for mod in (functions[0], functions[2], functions[4], functions[5])),
    )


def _models() -> tuple[tvm.IRModule, ...]:
    """Relax models with weights as constants: a convolution, an embedding, an attention."""
    image = relax.Var("x", relax.TensorType((1, 2, 6, 6), "float32"))
    weights = relax.const(np.ones((4, 2, 3, 3), "float32"))
    words = relax.Var("x", relax.TensorType((4,), "int64"))
    table = relax.const(np.ones((16, 4), "float32"))
    heads = relax.Var("x", relax.TensorType((1, 4, 2, 4), "float32"))
    return (
        _model(image, relax.op.nn.relu(relax.op.nn.conv2d(image, weights, padding=1))),
        _model(words, relax.op.take(table, words, axis=0)),
        _model(heads, relax.op.nn.attention(heads, heads, heads)),
    )


def _model(argument: relax.Var, result: relax.Expr) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    with builder.function("main", [argument]):
        with builder.dataflow():
            out = builder.emit_output(result)
        builder.emit_func_output(out)
    return builder.get()


def _scheduled(mod: tvm.IRModule) -> Scheduled:
    space = builtin_space(mod, target_from(TARGET), 1)
    schedules = [space.replay(trace, seed) for trace in space.traces[:2] for seed in range(1, 1 + _TRACES_EACH)]
    return Scheduled(
        module_json=module_to_json(mod),
        traces=tuple(trace_to_list(schedule.trace) for schedule in schedules if schedule is not None),
        workload_line=json.loads(json.dumps(plain_json(Workload(mod).as_json()))),
        args=[["TENSOR", arg.dtype, list(arg.shape)] for arg in tensor_args(mod["main"])],
    )
