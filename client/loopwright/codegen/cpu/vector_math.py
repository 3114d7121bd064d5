"""Elementary functions of float32 as polynomials, which vectorise; LLVM calls the C library once for each element.

`with_vector_math` replaces calls of exp, tanh, sigmoid, erf, log, cosh and sinh, and powers with a small whole
exponent, in a scheduled function for a CPU. Largest errors against the exact values, over all arguments with a normal
result, in units in the last place: exp 1.1, log 1, tanh 6, erf 6, sigmoid 3, cosh 4, sinh 5. NaN stays NaN, and
infinities and values out of range give what the C library gives, except that results of exp below 1.7e-38 are 0. tanh
and erf are within [-1, 1].

A function with the attribute ``loopwright.exact_math`` is left as it is.

The coefficients are minimax fits of the relative error, computed by iteratively reweighted least squares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.target import Target

from loopwright.codegen.functions import prim_funcs

EXACT_MATH = "loopwright.exact_math"
"""The attribute of a function, or of a module, whose elementary functions are those of the C library. It is a part of
the workload."""

_EXP = (0.499999995515, 0.166665771366, 0.041666853727, 0.008363170984, 0.001390129812)
"""(exp(r) - 1 - r) / r² for |r| <= ln(2) / 2, the lowest power first."""
_LOG = (
    0.333333299436, -0.25000303938, 0.200012010518, -0.166415806682,
    0.142099422868, -0.129892854032, 0.126557322493, -0.07974232929,
)  # fmt: skip
"""(log(1 + m) - m + m² / 2) / m³ for 1 + m in [sqrt(1/2), sqrt(2)]."""
_TANH = (
    (9.999999790192e-01, 1.337971914062e-01, 3.494035951767e-03, 2.058350266089e-05, 1.331909841223e-08),
    (1.0, 4.671303438220e-01, 2.587107858391e-02, 3.283095053028e-04, 7.762030966438e-07),
)
"""tanh(x) / x as a quotient of polynomials of x², for |x| <= 9.02; beyond, tanh is 1."""
_ERF = (
    (
        1.128379139309e00, 1.935461184563e-01, 5.310189410018e-02,
        3.883391659328e-03, 2.845673356319e-04, 1.986778842928e-06,
    ),
    (
        1.0, 5.048583369311e-01, 1.153504442832e-01,
        1.520734633145e-02, 1.185583382593e-03, 3.742021413197e-05,
    ),
)  # fmt: skip
"""erf(x) / x as a quotient of polynomials of x², for |x| <= 4; beyond, erf is 1."""

_SINH = (1 / 6, 1 / 120, 1 / 5040, 1 / 362880, 1 / 39916800)
"""(sinh(x) - x) / x³ as a series of x², for |x| < 1; its error is below 2e-10."""

_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.42860682030941723e-6
"""ln(2) in two parts; a product of the first, of 15 bits, with an exponent is exact."""
_ROUND = 1.5 * 2.0**23 + 126
"""Added to a number, it leaves in the last bits the nearest whole number, plus the exponent's bias of 127, less 1."""
_LARGEST_POWER = 3
"""A larger whole exponent is left to the C library."""


def with_exact_math(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose functions, lowered or not, keep the C library's elementary functions."""
    marked = mod.with_attr(EXACT_MATH, True)
    for var, func in prim_funcs(mod):
        marked.update_func(var, func.with_attr(EXACT_MATH, True))
    return marked


def keep_exact_math(mod: tvm.IRModule, lowered: tvm.IRModule) -> tvm.IRModule:
    """Return what a module was lowered to, with exact math if the module had it."""
    return with_exact_math(lowered) if mod.attrs and mod.attrs.get(EXACT_MATH) else lowered


def elementary_calls(value: Any) -> int:
    """Return how many calls of elementary functions an expression has, whether they become polynomials or not."""
    calls: list[Any] = []
    tvm_ffi.structural_walk(value, (tvm.ir.Call, calls.append), order="pre")
    return sum(str(getattr(call.op, "name", "")) in _EXPANSIONS for call in calls)


def with_vector_math(
    func: tirx.PrimFunc, target: Target, *, below_maxima: bool = False, sums: Collection[str] = ()
) -> tirx.PrimFunc:
    """Return the function with polynomials in place of elementary functions of float32; on a GPU, the function itself.

    Call it once the function is scheduled: schedules refer to blocks whose expressions they compare. With
    ``below_maxima`` (`loopwright.codegen.cpu.differences`), arguments of exp are not above 0, but for a rounding error.
    Elements of the buffers that ``sums`` names are not below 1. What is divided by one is multiplied with its
    reciprocal, which LLVM computes once for a row: dividing a vector takes several times as long as multiplying it.
    """
    if target.kind.name != "llvm" or (func.attrs and func.attrs.get(EXACT_MATH)):
        return func

    params = tuple(func.params)
    expansions = {**_EXPANSIONS, "tirx.exp": _exp_below_maximum} if below_maxima else _EXPANSIONS

    def rewrite(call: tvm.ir.Call) -> Any:
        expand = expansions.get(str(getattr(call.op, "name", "")))
        if expand is None or str(call.ty) != "float32":
            return call
        args = [_bindable(arg, params) for arg in call.args]
        return call if any(arg is None for arg in args) else expand(*args)

    def divide(quotient: tirx.Div) -> Any:
        divisor = quotient.b
        if not isinstance(divisor, tvm.ir.TensorLoad) or str(divisor.source.name) not in sums:
            return quotient
        return quotient.a * (_f32(1.0) / divisor) if str(quotient.ty) == "float32" else quotient

    rewrites = [(tvm.ir.Call, rewrite), (tirx.Div, divide), (tirx.Cast, partial(_rounded, params))]
    body = tvm_ffi.structural_map(func.body, rewrites, order="post")
    rounded_once = partial(_rounded_once, params)
    return func.with_body(tvm_ffi.structural_map(body, [(tirx.BufferStore, rounded_once)], order="post"))


def _rounded(params: Sequence[Any], cast: tirx.Cast) -> Any:
    """Return a float32 that is rounded to bfloat16 and is a float32 again as operations on its bits."""
    value = _to_round(cast.value, params) if str(cast.ty) == "float32" else None
    if value is None:
        return cast
    return _let(
        tirx.reinterpret("uint32", value),
        lambda bits: tirx.reinterpret("float32", _to_nearest(bits) & _u32(0xFFFF0000)),
    )


def _rounded_once(params: Sequence[Any], store: tirx.BufferStore) -> Any:
    """Return the store with the bits of a bfloat16: TVM would write what is rounded, and bind its variables, twice."""
    value = _to_round(store.value, params)
    if value is None:
        return store
    upper = _let(tirx.reinterpret("uint32", value), lambda bits: tirx.Cast("uint16", _to_nearest(bits) >> _u32(16)))
    return tirx.BufferStore(store.buffer, tirx.reinterpret("bfloat16", upper), store.indices)


def _to_round(cast: Any, params: Sequence[Any]) -> Any | None:
    """Return the float32, which may be bound to a variable, that a cast rounds to bfloat16; None if there is none."""
    is_rounding = isinstance(cast, tirx.Cast) and (str(cast.ty), str(cast.value.ty)) == ("bfloat16", "float32")
    return _bindable(cast.value, params) if is_rounding else None


def _bindable(value: Any, params: Sequence[Any]) -> Any | None:
    """Return a value that may be bound to a variable: it reads elements of arguments of bfloat16 by their bits.

    TVM's passes that make integers of bfloat16 leave out what variables are bound to, where LLVM would read the
    integers as numbers. Return None if the value is computed from bfloat16 otherwise: of buffers that are no arguments,
    these passes make float32 at times.
    """

    def is_element(load: Any) -> bool:
        is_read = isinstance(load, tvm.ir.TensorLoad) and str(load.ty) == "bfloat16"
        return is_read and any(load.source.same_as(param) for param in params)

    def by_bits(cast: tirx.Cast) -> Any:
        if str(cast.ty) != "float32" or not is_element(cast.value):
            return cast
        upper = tirx.Cast("uint32", tirx.reinterpret("uint16", cast.value))
        return tirx.reinterpret("float32", upper << _u32(16))

    def without_bits(call: tvm.ir.Call) -> Any:
        is_bits = str(getattr(call.op, "name", "")) == "tirx.reinterpret" and is_element(call.args[0])
        return tirx.const(0, "uint16") if is_bits else call

    result = tvm_ffi.structural_map(value, [(tirx.Cast, by_bits)], order="post")
    rest = tvm_ffi.structural_map(result, [(tvm.ir.Call, without_bits)], order="post")
    found: list[Any] = []
    for kind in (tvm.ir.TensorLoad, tvm.ir.Call, tirx.Cast):
        tvm_ffi.structural_walk(rest, (kind, found.append), order="pre")
    return None if any(str(part.ty) == "bfloat16" for part in found) else result


def _to_nearest(bits: Any) -> Any:
    """Return the bits of a float32 whose upper half is the nearest bfloat16, of two as near the even one."""
    return bits + ((bits >> _u32(16)) & _u32(1)) + _u32(0x7FFF)


def _exp(x: Any) -> Any:
    def body(x: Any) -> Any:
        # Conditions come with the bound first, for then NaN passes through.
        clamped = _at_most(_at_least(x, -87.0), 89.0)
        return _let(
            clamped, lambda x: _let(x * _f32(1 / math.log(2)) + _f32(_ROUND), lambda shifted: power(x, shifted))
        )

    def power(x: Any, shifted: Any) -> Any:
        # The last bits of the sum are those of the exponent, which is thereby rounded. 2**128 is no float32, so half
        # of the result comes first.
        half = tirx.reinterpret("float32", tirx.reinterpret("int32", shifted) << 23)
        rest = _let(shifted - _f32(_ROUND), lambda n: x + n * _f32(-_LN2_HIGH) + n * _f32(-_LN2_LOW))
        return _let(half, lambda half: _let(rest, lambda r: doubled(half, r)))

    def doubled(half: Any, r: Any) -> Any:
        sum_of_halves = half * r * (_polynomial(r, _EXP) * r + _f32(1.0)) + half
        return _let(sum_of_halves, lambda value: value + value)

    return _let(x, lambda x: tirx.Select(x < _f32(-87.0), _f32(0.0), body(x)))


def _exp_below_maximum(x: Any) -> Any:
    """Return exp of a number that is at most 88: its power of two is a float32, and it has no limit to keep."""

    def body(x: Any) -> Any:
        limited = _at_least(x, -87.0)
        return _let(
            limited, lambda x: _let(x * _f32(1 / math.log(2)) + _f32(_ROUND + 1), lambda shifted: power(x, shifted))
        )

    def power(x: Any, shifted: Any) -> Any:
        factor = tirx.reinterpret("float32", tirx.reinterpret("int32", shifted) << 23)
        rest = _let(shifted - _f32(_ROUND + 1), lambda n: x + n * _f32(-_LN2_HIGH) + n * _f32(-_LN2_LOW))
        return _let(rest, lambda r: ((_polynomial(r, _EXP) * r + _f32(1.0)) * r + _f32(1.0)) * factor)

    return _let(x, lambda x: tirx.Select(x < _f32(-87.0), _f32(0.0), body(x)))


def _log(x: Any) -> Any:
    def finite(x: Any) -> Any:
        # Numbers below the normal ones are made normal first.
        is_small = x < _f32(2.0**-126)
        bits = tirx.reinterpret("int32", tirx.Select(is_small, x * _f32(2.0**23), x))
        return _let(bits, lambda bits: parts(bits, tirx.Select(is_small, _f32(-23.0), _f32(0.0))))

    def parts(bits: Any, shift: Any) -> Any:
        # The exponent is that of x / sqrt(1/2), so that the rest is in [sqrt(1/2), sqrt(2)).
        offset = bits - 0x3F3504F3
        exponent = tirx.Cast("float32", offset >> 23) + shift
        rest = tirx.reinterpret("float32", (offset & 0x7FFFFF) + 0x3F3504F3) - _f32(1.0)
        return _let(exponent, lambda n: _let(rest, lambda m: joined(m, n)))

    def joined(m: Any, n: Any) -> Any:
        correction = _polynomial(m, _LOG) * (m * m * m) + n * _f32(_LN2_LOW)
        return correction - m * m * _f32(0.5) + m + n * _f32(_LN2_HIGH)

    def value(x: Any) -> Any:
        regular = tirx.Select(x < _f32(math.inf), finite(x), x)
        return tirx.Select(x < _f32(0.0), _f32(math.nan), tirx.Select(x == _f32(0.0), _f32(-math.inf), regular))

    return _let(x, value)


def _tanh(x: Any) -> Any:
    return _let(x, lambda x: _saturated(x, 9.02, _odd_quotient(x, *_TANH)))


def _erf(x: Any) -> Any:
    return _let(x, lambda x: _saturated(x, 4.0, _odd_quotient(x, *_ERF)))


def _saturated(x: Any, bound: float, value: Any) -> Any:
    """Return the value, limited to [-1, 1]; beyond the bound, -1 or 1. NaN is neither, and stays."""
    limited = _at_most(_at_least(value, -1.0), 1.0)
    above = tirx.Select(x >= _f32(bound), _f32(1.0), limited)
    return tirx.Select(x <= _f32(-bound), _f32(-1.0), above)


def _cosh(x: Any) -> Any:
    return _let(_half_exp(x), lambda half: half * (half * _f32(0.5)) + _f32(0.5) / (half * half))


def _sinh(x: Any) -> Any:
    def far(x: Any) -> Any:
        size = _let(_half_exp(x), lambda half: half * (half * _f32(0.5)) - _f32(0.5) / (half * half))
        return _let(size, lambda size: tirx.Select(x < _f32(0.0), _f32(0.0) - size, size))

    def value(x: Any) -> Any:
        near = _let(x * x, lambda square: x + x * square * _polynomial(square, _SINH))
        return tirx.Select(tirx.And(x > _f32(-1.0), x < _f32(1.0)), near, far(x))

    return _let(x, value)


def _half_exp(x: Any) -> Any:
    """Return exp(|x| / 2), whose square is finite wherever sinh and cosh are."""
    return _let(x, lambda x: _exp(tirx.Select(x < _f32(0.0), _f32(0.0) - x, x) * _f32(0.5)))


def _sigmoid(x: Any) -> Any:
    return _f32(1.0) / (_f32(1.0) + _exp(_f32(0.0) - x))


def _power(x: Any, exponent: Any) -> Any:
    constant = float(exponent.value) if isinstance(exponent, tirx.FloatImm) else None
    if constant == 0.5:
        return tirx.sqrt(x)
    if constant is None or not 1 <= constant <= _LARGEST_POWER or constant != int(constant):
        return tirx.pow(x, exponent)
    return _let(x, lambda x: math.prod([x] * (int(constant) - 1), start=x))


_EXPANSIONS: dict[str, Callable[..., Any]] = {
    "tirx.exp": _exp,
    "tirx.log": _log,
    "tirx.tanh": _tanh,
    "tirx.cosh": _cosh,
    "tirx.sinh": _sinh,
    "tirx.erf": _erf,
    "tirx.sigmoid": _sigmoid,
    "tirx.pow": _power,
}


def _odd_quotient(x: Any, numerator: Sequence[float], denominator: Sequence[float]) -> Any:
    return _let(x * x, lambda square: x * _polynomial(square, numerator) / _polynomial(square, denominator))


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Return the polynomial by Horner's rule; the lowest power comes first."""
    value = _f32(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + _f32(coefficient)
    return value


def _at_least(x: Any, bound: float) -> Any:
    return tirx.Select(x < _f32(bound), _f32(bound), x)


def _at_most(x: Any, bound: float) -> Any:
    return tirx.Select(x > _f32(bound), _f32(bound), x)


def _let(value: Any, body: Callable[[Any], Any]) -> Any:
    var = tvm.ir.Var("x", str(value.ty))
    return tirx.Let(var, value, body(var))


def _u32(value: int) -> Any:
    return tirx.const(value, "uint32")


def _f32(value: float) -> Any:
    return tirx.FloatImm("float32", value)
