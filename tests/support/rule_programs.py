"""Functions that Loopwright's rules schedule, and the check that a scheduled one computes the same."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, topi
from tvm.target import Target

from loopwright.codegen.arrays import DRAWS, Array, compare, poison, random_array, tolerance
from loopwright.codegen.functions import prim_funcs, write_only
from loopwright.codegen.graph import recurrence
from loopwright.codegen.graph.attention_program import Step, compute_attention
from loopwright.codegen.graph.ranges import ranges_of_rows
from loopwright.codegen.graph.recurrence import Cell, Recurrence
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.lowering import lower
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.rounding import whole
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import target_from
from loopwright.frontends.log_sum_exp import log_sum_exp as emit_log_sum_exp
from tuner.space.design_space import DesignSpace
from tuner.workload import tensor_args

TARGET = target_from({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 2})
"""AVX2, which every machine that tests run on has."""


def function(*tensors: te.Tensor) -> tvm.IRModule:
    """Return the workload with these arguments, the results last."""
    return normal_form(te.create_prim_func(list(tensors)))


def product(rows: int, columns: int, depth: int, epilogue: Callable[[Any], Any] | None = None) -> tvm.IRModule:
    a, b = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return function(a, b, c if epilogue is None else epilogue(c))


def byte_product(
    rows: int, columns: int, depth: int, dtypes: tuple[str, str] = ("uint8", "int8"), *, batch: int | None = None
) -> tvm.IRModule:
    """A product in int32 of operands of these dtypes; with a batch, the right one is transposed."""
    lead = () if batch is None else (batch,)
    a = te.placeholder((*lead, rows, depth), dtypes[0], name="A")
    b = te.placeholder((*lead, *((depth, columns) if batch is None else (columns, depth))), dtypes[1], name="B")
    k = te.reduce_axis((0, depth), name="k")

    def element(*place: Any) -> Any:
        *outer, i, j = place
        right = b[k, j] if batch is None else b[(*outer, j, k)]
        return te.sum(a[(*outer, i, k)].astype("int32") * right.astype("int32"), axis=k)

    return function(a, b, te.compute((*lead, rows, columns), element, name="C"))


def quantised_linear(rows: int, columns: int, depth: int, dtypes: tuple[str, str] = ("uint8", "int8")) -> tvm.IRModule:
    """A product of bytes less the left one's zero point, with a scale and a bias a column, ReLU, in bytes again."""
    a, b = te.placeholder((rows, depth), dtypes[0], name="A"), te.placeholder((columns, depth), dtypes[1], name="B")
    scale, bias = te.placeholder((columns,), name="scale"), te.placeholder((columns,), name="bias")
    k = te.reduce_axis((0, depth), name="k")
    shifted = te.compute(a.shape, lambda i, j: a[i, j].astype("int16") - tvm.tirx.const(7, "int16"), name="shifted")
    c = te.compute(
        (rows, columns), lambda i, j: te.sum(shifted[i, k].astype("int32") * b[j, k].astype("int32"), axis=k), name="C"
    )
    real = te.compute(c.shape, lambda i, j: c[i, j].astype("float32") * scale[j] * 1e-3 + bias[j], name="real")
    whole = te.compute(c.shape, lambda *i: te.nearbyint(topi.nn.relu(real)(*i) * 8.0) + 3.0, name="whole")
    result = te.compute(c.shape, lambda *i: te.min(te.max(whole(*i), 0.0), 255.0).astype("uint8"), name="result")
    return function(a, b, scale, bias, result)


def linear(rows: int, columns: int, depth: int) -> tvm.IRModule:
    """A product with a transposed right operand, a bias and gelu."""
    a, b = te.placeholder((rows, depth), name="A"), te.placeholder((columns, depth), name="B")
    bias = te.placeholder((columns,), name="bias")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    shifted = te.compute(c.shape, lambda i, j: c[i, j] + bias[j], name="shifted")
    gelu = te.compute(c.shape, lambda i, j: shifted[i, j] * (1.0 + te.erf(shifted[i, j] * 0.7071)) * 0.5, name="gelu")
    return function(a, b, bias, gelu)


def by_columns(rows: int, columns: int, depth: int, dtype: str) -> tvm.IRModule:
    """A product in float32 with a transposed right operand, and nothing after it."""
    a, b = te.placeholder((rows, depth), name="A"), te.placeholder((columns, depth), dtype, name="B")
    k = te.reduce_axis((0, depth), name="k")
    shape = (rows, columns)
    return function(a, b, te.compute(shape, lambda i, j: te.sum(a[i, k] * b[j, k].astype("float32"), axis=k), name="C"))


def block_scaled(
    rows: int, columns: int, depth: int, size: int, epilogue: Callable[[Any], Any] | None = None
) -> tvm.IRModule:
    """A product with a weight of 4 bits, two to a byte, with a scale and a zero point for each block of the depth."""
    count = depth // size
    a = te.placeholder((rows, depth), name="A")
    weight = te.placeholder((columns, depth // 2), "uint8", name="W")
    scales = te.placeholder((count, columns), name="scales")
    zeros = te.placeholder((columns, count), "uint8", name="zeros")
    t, b = te.reduce_axis((0, size), name="t"), te.reduce_axis((0, count), name="b")

    def decoded(j: Any, block: Any) -> Any:
        byte = weight[j, block * (size // 2) + t // 2]
        number = te.if_then_else(t % 2 < 1, byte & tvm.tirx.const(15, "uint8"), byte >> tvm.tirx.const(4, "uint8"))
        return number.astype("float32") - zeros[j, block].astype("float32")

    blocks = te.compute(
        (rows, count, columns),
        lambda i, block, j: te.sum(a[i, block * size + t] * decoded(j, block), axis=t),
        name="blocks",
    )
    c = te.compute((rows, columns), lambda i, j: te.sum(blocks[i, b, j] * scales[b, j], axis=b), name="C")
    result = c if epilogue is None else epilogue(c)
    return normal_form(function(a, weight, scales, zeros, result)["main"].with_attr("layout_free_buffers", [1]))


def block_dots(
    rows: int, columns: int, depth: int, size: int, epilogue: Callable[[Any], Any] | None = None, *, bits: int = 4
) -> tvm.IRModule:
    """A product of rows of int8 with such a weight, in int32, with a scale for each block of a row as well."""
    count, each = depth // size, 8 // bits
    a, row_scales = te.placeholder((rows, depth), "int8", name="A"), te.placeholder((rows, count), name="R")
    weight = te.placeholder((columns, depth // each), "uint8", name="W")
    scales = te.placeholder((count, columns), name="scales")
    zeros = te.placeholder((count, columns), "uint8", name="zeros")
    t, u, b = (te.reduce_axis((0, extent), name=name) for extent, name in ((size, "t"), (size, "u"), (count, "b")))

    def decoded(block: Any, place: Any, j: Any) -> Any:
        if bits == 8:
            return weight[j, block * size + place]
        byte = weight[j, block * (size // 2) + place // 2]
        return (byte >> (place % 2 * 4).astype("uint8")) & tvm.tirx.const(15, "uint8")

    numbers = te.compute((count, size, columns), decoded, name="numbers")
    blocks = te.compute(
        (rows, count, columns),
        lambda i, block, j: te.sum(
            a[i, block * size + t].astype("int32") * numbers[block, t, j].astype("int32"), axis=t
        ),
        name="blocks",
    )
    sums = te.compute(
        (rows, count), lambda i, block: te.sum(a[i, block * size + u].astype("int32"), axis=u), name="sums"
    )
    c = te.compute(
        (rows, columns),
        lambda i, j: te.sum(
            (blocks[i, b, j] - zeros[b, j].astype("int32") * sums[i, b]).astype("float32")
            * (row_scales[i, b] * scales[b, j]),
            axis=b,
        ),
        name="C",
    )
    result = c if epilogue is None else epilogue(c)
    func = function(a, row_scales, weight, scales, zeros, result)["main"]
    return normal_form(func.with_attr("layout_free_buffers", [2]))


def looked_up(rows: int, columns: int, depth: int, size: int) -> tvm.IRModule:
    """A product with a weight of 4 bits that is decoded in a block of its own, with one zero point for all."""
    count = depth // size
    a, weight = te.placeholder((rows, depth), name="A"), te.placeholder((columns, depth // 2), "uint8", name="W")
    scales = te.placeholder((count, columns), name="scales")
    t, b = te.reduce_axis((0, size), name="t"), te.reduce_axis((0, count), name="b")

    def decoded(block: Any, place: Any, j: Any) -> Any:
        byte = weight[j, block * (size // 2) + place // 2]
        return te.if_then_else(place % 2 < 1, byte & tvm.tirx.const(15, "uint8"), byte >> tvm.tirx.const(4, "uint8"))

    numbers = te.compute((count, size, columns), decoded, name="numbers")
    blocks = te.compute(
        (rows, count, columns),
        lambda i, block, j: te.sum(
            a[i, block * size + t] * (numbers[block, t, j].astype("float32") - tvm.tirx.const(8, "float32")), axis=t
        ),
        name="blocks",
    )
    c = te.compute((rows, columns), lambda i, j: te.sum(blocks[i, b, j] * scales[b, j], axis=b), name="C")
    return with_weight(function(a, weight, scales, c), 1)


def batched(batch: int, rows: int, columns: int, depth: int) -> tvm.IRModule:
    a, b = te.placeholder((batch, rows, depth), name="A"), te.placeholder((batch, depth, columns), name="B")
    return function(a, b, topi.nn.batch_matmul(a, b, transpose_b=False))


def attention(
    heads: int,
    rows: int,
    columns: int,
    width: int,
    *,
    moved: bool = False,
    in_order: bool = False,
    cached: bool = False,
    rounded: bool = False,
    blocks: int = 0,
) -> tvm.IRModule:
    """Scaled attention whose operands and result have the heads behind the rows, as models have them.

    With ``moved``, the keys are transposed before, and the result once more. With ``in_order``, the result has the
    heads first: TVM's own rules raise on that. With ``cached``, the keys and values have the heads first. With
    ``rounded``, the probabilities are rounded to eighths. With ``blocks``, a mask hides keys, and flags whole blocks.
    """
    q, *stored = (
        te.placeholder((heads, count, width) if cached and name != "q" else (count, heads, width), name=name)
        for count, name in ((rows, "q"), (columns, "k"), (columns, "v"))
    )

    def at(tensor: te.Tensor) -> Callable[..., Any]:
        return (lambda c, h, i: tensor(h, c, i)) if cached else tensor

    k, v = map(at, stored)
    d, j, s, m = (
        te.reduce_axis((0, extent), name)
        for extent, name in ((width, "d"), (columns, "j"), (columns, "s"), (columns, "m"))
    )
    keys = te.compute((heads, width, columns), lambda h, i, c: k(c, h, i), name="keys") if moved else None
    scores = te.compute(
        (heads, rows, columns),
        lambda h, i, c: te.sum(q[i, h, d] * (k(c, h, d) if keys is None else keys[h, d, c]), axis=d),
        name="scores",
    )
    hiding = []
    if blocks:
        hiding = [te.placeholder((rows, columns), "bool", "mask"), te.placeholder((blocks,), "bool", "seen")]

    def weight(h: Any, i: Any, c: Any) -> Any:
        scaled = scores(h, i, c) * tvm.tirx.const(width**-0.5, "float32")
        if not hiding:
            return scaled
        hidden = tvm.tirx.const(-np.inf, "float32")
        return tvm.tirx.Select(
            hiding[1](c // (columns // blocks)), tvm.tirx.Select(hiding[0](i, c), scaled, hidden), hidden
        )

    def value(c: Any, h: Any, i: Any) -> Any:
        return tvm.tirx.Select(hiding[1](c // (columns // blocks)), v(c, h, i), tvm.tirx.const(0, "float32"))

    seen_v = te.compute((columns, heads, width), value, name="seen_v") if hiding else v
    weights = te.compute(scores.shape, weight, name="weights")
    maximum = te.compute((heads, rows), lambda *i: te.max(weights(*i, j), axis=j), name="maximum")
    exps = te.compute(scores.shape, lambda *i: te.exp(weights(*i) - maximum(*i[:-1])), name="exps")
    total = te.compute((heads, rows), lambda *i: te.sum(exps(*i, s), axis=s), name="total")
    shares = exps
    if rounded:
        shares = te.compute(exps.shape, lambda *i: te.nearbyint(exps(*i) / total(*i[:-1]) * 8), name="shares")
    values = te.compute(
        (heads, rows, width), lambda h, i, c: te.sum(shares[h, i, m] * seen_v(m, h, c), axis=m), name="values"
    )
    stored += hiding
    if rounded:
        return function(q, *stored, te.compute((rows, heads, width), lambda i, h, c: values[h, i, c] / 8, name="out"))
    if in_order:
        return function(q, *stored, te.compute(values.shape, lambda h, i, c: values[h, i, c] / total[h, i], name="out"))
    out = te.compute((rows, heads, width), lambda i, h, c: values[h, i, c] / total[h, i], name="out")
    return function(q, *stored, topi.transpose(out, (1, 0, 2)) if moved else out)


def padded_attention(
    heads: int | None, rows: int, columns: int, width: int, *, masked: bool = False, depth: int = 16
) -> tvm.IRModule:
    """Scaled attention as it is lowered from models, whose rows are padded; None for no axis of heads.

    With ``masked``, a mask is added, and another one hides elements.
    """
    lead = () if heads is None else (heads,)
    q, k, v = (
        te.placeholder((*lead, count, each), name=name)
        for count, each, name in ((rows, depth, "q"), (columns, depth, "k"), (columns, width, "v"))
    )
    added, hidden = te.placeholder((rows, columns), name="added"), te.placeholder((rows, 1), "bool", "hidden")
    steps: list[Any] = [(Step(value=depth**-0.5), [None])]
    if masked:
        steps += [(Step(mask=added), [added]), (Step(condition=hidden, other=-3.0), [hidden])]
    order = [*reversed(range(len(lead) + 1)), len(lead) + 1]
    compute = compute_attention((*lead, rows, columns), depth, width, "float32", order, pads_rows=True)
    result = compute(q, lambda *i: k(*i[:-2], i[-1], i[-2]), v, steps, [], [], None, False)
    return function(q, k, v, *((added, hidden) if masked else ()), result)


def with_weight(mod: tvm.IRModule, position: int) -> tvm.IRModule:
    """Return the workload with the argument at a position as its weight."""
    return normal_form(mod["main"].with_attr("layout_free_buffers", [position]))


def column_sum(rows: int, columns: int, epilogue: Callable[[Any], Any] | None = None) -> tvm.IRModule:
    """The sum of each column."""
    x = te.placeholder((rows, columns), name="x")
    y = topi.sum(x, axis=0)
    return function(x, y if epilogue is None else epilogue(y))


def softmax(*shape: int) -> tvm.IRModule:
    x = te.placeholder(shape, name="x")
    return function(x, topi.nn.softmax(x))


def log_softmax(*shape: int) -> tvm.IRModule:
    x = te.placeholder(shape, name="x")
    return function(x, topi.nn.log_softmax(x))


def layer_norm(rows: int, columns: int) -> tvm.IRModule:
    x = te.placeholder((rows, columns), name="x")
    gamma, beta = te.placeholder((columns,), name="gamma"), te.placeholder((columns,), name="beta")
    return function(x, gamma, beta, topi.nn.layer_norm(x, gamma, beta, [1], 1e-5))


def quantised_layer_norm(rows: int, columns: int, dtype: str = "uint8") -> tvm.IRModule:
    x = te.placeholder((rows, columns), name="x")
    gamma, beta = te.placeholder((columns,), name="gamma"), te.placeholder((columns,), name="beta")
    scale, zero = te.placeholder((1,), name="scale"), te.placeholder((1,), dtype, name="zero")
    y = topi.nn.layer_norm(x, gamma, beta, [1], 1e-5)
    integers = te.compute(
        y.shape, lambda *i: whole(y(*i) / scale[0], zero[0].astype("float32"), dtype).astype(dtype), name="integers"
    )
    return function(x, gamma, beta, scale, zero, integers)


def ranges(rows: int, columns: int) -> tvm.IRModule:
    x = te.placeholder((rows, columns), name="x")
    return function(x, ranges_of_rows(x))


def rms_norm(rows: int, columns: int) -> tvm.IRModule:
    x, weight = te.placeholder((rows, columns), name="x"), te.placeholder((columns,), name="weight")
    return function(x, weight, topi.nn.rms_norm(x, weight, [1], 1e-5))


def two_maps(*shape: int) -> tvm.IRModule:
    """A sum, and an activation of it: two outputs."""
    x, y = te.placeholder(shape, name="x"), te.placeholder(shape, name="y")
    total = topi.add(x, y)
    return function(x, y, total, topi.tanh(total))


def summed_norm(*shape: int, kind: str = "layer") -> tvm.IRModule:
    """The sum of two tensors and its norm ("layer" or "rms") over the last axis: two outputs."""
    x, y = te.placeholder(shape, name="x"), te.placeholder(shape, name="y")
    gamma, beta = te.placeholder(shape[-1:], name="gamma"), te.placeholder(shape[-1:], name="beta")
    total, axes = topi.add(x, y), [len(shape) - 1]
    if kind == "rms":
        return function(x, y, gamma, total, topi.nn.rms_norm(total, gamma, axes, 1e-5))
    return function(x, y, gamma, beta, total, topi.nn.layer_norm(total, gamma, beta, axes, 1e-5))


def largest_magnitude(rows: int, columns: int) -> tvm.IRModule:
    x = te.placeholder((rows, columns), name="x")
    return function(x, topi.max(topi.abs(x), axis=1))


def largest(rows: int, columns: int) -> tvm.IRModule:
    """The largest element of each row, or NaN, as Relax's maximum is lowered."""
    return lowered(lambda x: relax.op.max(x, 1), (rows, columns))


def lowered(compute: Callable[[Any], Any], shape: Sequence[int]) -> tvm.IRModule:
    """Return the function that Relax operators on a tensor of float32 are lowered to."""
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(compute(x))
        builder.emit_func_output(result)
    [(_, func)] = prim_funcs(lower(builder.get(), TARGET))
    return normal_form(func)


def log_sum_exp(axis: int, shape: Sequence[int]) -> tvm.IRModule:
    """The logarithm of the sum of exponentials along an axis, as front ends make it."""
    return lowered(lambda x: emit_log_sum_exp(relax.BlockBuilder.current(), x, [axis], False), shape)


def mean(rows: int, columns: int) -> tvm.IRModule:
    x = te.placeholder((rows, columns), name="x")
    return function(x, topi.sum(x, axis=1) / tvm.tirx.const(columns, "float32"))


def average_pool(channels: int, height: int, width: int) -> tvm.IRModule:
    x = te.placeholder((1, channels, height, width), name="x")
    total = topi.sum(x, axis=(2, 3), keepdims=True)
    return function(x, total / tvm.tirx.const(height * width, "float32"))


def silu(*shape: int) -> tvm.IRModule:
    x, y = te.placeholder(shape, name="x"), te.placeholder(shape, name="y")
    return function(x, y, topi.add(topi.multiply(x, topi.sigmoid(x)), y))


def turned(channels: int, height: int, width: int, *, pads: Sequence[int] = ()) -> tvm.IRModule:
    """Return the bytes of an image, with the channels last, of numbers with the channels first."""

    def bytes_of(x: Any) -> Any:
        step, zero = relax.const(np.array([0.03], "float32")), relax.const(np.array([7], "uint8"))
        quantised = relax.op.quantize(x, step, zero, 0, "uint8")
        padded = relax.op.nn.pad(quantised, list(pads), "constant", 7.0) if pads else quantised
        return relax.op.permute_dims(padded, [0, 2, 3, 1])

    return lowered(bytes_of, (1, channels, height, width))


def check_program(mod: tvm.IRModule, schedule: Any, target: Target = TARGET) -> None:
    """Replay a schedule's trace from JSON, build it, and compare with the unscheduled program on random inputs."""
    trace = json.loads(trace_to_json(schedule.trace))
    check_results(mod, scheduled_module(mod, trace, target), target)


def check_results(mod: tvm.IRModule, program: tvm.IRModule, target: Target = TARGET) -> None:
    """Build a program of a workload, and compare it with the unscheduled one on random inputs of each kind."""
    for draw, results, expected in zip(DRAWS, _run(mod, program, target), _expected(mod), strict=True):
        for info, result, wanted in zip(tensor_args(mod["main"]), results, expected, strict=True):
            found = compare(result, wanted, tolerance(info.dtype))
            assert found.close, f"{found.max_abs_error} on {draw} inputs"


@functools.cache
def _expected(mod: tvm.IRModule) -> list[list[Array]]:
    return _run(mod, mod, TARGET)


def _run(mod: tvm.IRModule, program: tvm.IRModule, target: Target) -> list[list[Array]]:
    """Return all arguments after a call of a program of a workload on random inputs of each kind."""
    rng = np.random.default_rng(0)
    infos = list(zip(tensor_args(mod["main"]), write_only(mod["main"]), strict=True))
    function = compile_module(program, target)["main"]
    results = []
    for draw in DRAWS:
        arguments = [
            tvm.runtime.tensor(poison(info, draw) if output else random_array(info, draw, rng, 1))
            for info, output in infos
        ]
        function(*arguments)
        results.append([argument.numpy() for argument in arguments])
    return results


def sketches_of(space: DesignSpace, rule: str) -> list[Any]:
    """Return the open traces of a rule in a space: one, or none if the rule does not apply."""
    return [trace for trace in space.traces if any(rule in str(inst.attrs) for inst in trace.insts)]


def recurrent(cell: str, batch: int, hidden: int, *, steps: int = 5, **options: bool) -> tvm.IRModule:
    """Steps of a recurrent layer, "gru" or "lstm"."""
    activations = ("Sigmoid", "Tanh", "Tanh")
    return normal_form(
        recurrence.function(Recurrence(Cell(cell), steps, batch, hidden, "float32", "float32", activations, **options))
    )
