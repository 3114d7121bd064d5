"""PyTorch's exported programs in Relax: TVM's importer, with our translations before its own, each of which is checked.

``torch.export`` says of each node which dtype and shape its result has. A translation with another is refused.
"""

from __future__ import annotations

import functools
import operator
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
import tvm
from tvm import relax, tirx
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

from loopwright.codegen.graph.sources import SourceBuilder
from loopwright.errors import first_line
from loopwright.frontends.torch import (
    accumulation,
    complex_numbers,
    division,
    elementary,
    indexing,
    norms,
    operators,
    ordering,
    promotion,
    quantisation,
    recurrent,
    resampling,
    scattering,
    selection,
)
from loopwright.frontends.torch.cells import merge_cells
from loopwright.frontends.torch.complex_numbers import Complex
from loopwright.frontends.torch.node import Converter, Node, dtype_of, is_known, is_tensor
from loopwright.frontends.torch.source import source

CONVERTERS: dict[str, Converter] = {
    **operators.CONVERTERS,
    **indexing.CONVERTERS,
    **norms.CONVERTERS,
    **promotion.CONVERTERS,
    **quantisation.CONVERTERS,
    **recurrent.CONVERTERS,
    **division.CONVERTERS,
    **elementary.CONVERTERS,
    **accumulation.CONVERTERS,
    **resampling.CONVERTERS,
    **scattering.CONVERTERS,
    **ordering.CONVERTERS,
    **selection.CONVERTERS,
}


_FEW = 64
"""Elements of constants with which the importer computes: counts of shifts, not weights."""


def import_program(program: Any) -> tvm.IRModule:
    """Return the module of a decomposed exported program, whose parameters are constants.

    Raises:
        Exception: an operator has no translation, or the translation has another dtype or shape than PyTorch's
            result; the message names the operator.
    """
    merge_cells(program.graph)
    complex_numbers.check_ends(program)
    complex_numbers.take_parts(program.graph)
    importer = _Importer(_stored(program), complex_numbers.imaginary_parts(program))
    importer._check_unsupported_func_type(program.graph.nodes)
    module = importer.from_exported_program(program, False, True, False, None)
    return importer.block_builder.with_sources(module)


class _Importer(ExportedProgramImporter):
    """Also branches of ``torch.cond`` are translated and checked in this way."""

    def __init__(self, stored: Mapping[str, torch.Tensor], imaginary: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.stored, self.imaginary = stored, imaginary
        usual: dict[str, Any] = self.create_convert_map()
        names = (*usual, *CONVERTERS, *complex_numbers.CONVERTERS)
        self.convert_map = {name: functools.partial(self._convert, usual.get(name)) for name in names}

    @property
    def block_builder(self) -> SourceBuilder:
        return self._builder

    @block_builder.setter
    def block_builder(self, usual: relax.BlockBuilder) -> None:
        self._builder = SourceBuilder()

    def _translate_fx_graph(self, graph_module: Any, nodes: Any, inputs: Any, *others: Any) -> Any:
        self._check_unsupported_func_type(nodes)
        whole = {
            name: Complex(inputs[name], relax.const(part.numpy()))
            for name, part in self.imaginary.items()
            if name in inputs
        }
        return super()._translate_fx_graph(graph_module, nodes, {**inputs, **whole}, *others)

    @staticmethod
    def _convert_data_type(input_type: Any, env: Any = None) -> Any:
        """Return TVM's dtype; of complex numbers that of the real part, for which an input stands."""
        if isinstance(input_type, torch.dtype) and input_type.is_complex:
            input_type = input_type.to_real()
        return ExportedProgramImporter._convert_data_type(input_type, env)

    @staticmethod
    def _convert_pytorch_tensor_to_tvm(tensor_value: torch.Tensor) -> Any:
        whole = tensor_value.detach()
        real = whole.real.contiguous() if whole.is_complex() else whole
        return ExportedProgramImporter._convert_pytorch_tensor_to_tvm(real)

    def _check_unsupported_func_type(self, nodes: Any) -> None:
        for node in nodes:
            if node.op == "call_function" and node.target.__name__ not in self.convert_map:
                # An operator with effects, such as a check of its operands, is called by another.
                operators = [each for each in (*node.args, node.target) if isinstance(each, torch._ops.OpOverload)]
                raise ValueError(f"{(operators or [node.target])[0]} has no translation")

    def _convert(self, usual: Callable[[Any], Any] | None, fx_node: Any) -> Any:
        self.block_builder.source = source(fx_node)
        try:
            if any(map(complex_numbers.is_complex, (fx_node, *fx_node.all_input_nodes))):
                result = self._complex(fx_node, usual)
            elif (known := _known(fx_node)) is not None:
                result = known
            else:
                result = self._real(fx_node, usual)
            result = self._emitted(result)
            _check(fx_node, result)
        except Exception as error:
            raise ValueError(f"{_origin(fx_node)}: {first_line(error)}") from error
        finally:
            self.block_builder.source = ""
        return result

    def _real(self, fx_node: Any, usual: Callable[[Any], Any] | None) -> Any:
        converter = CONVERTERS.get(fx_node.target.__name__)
        if converter is not None:
            return converter(self._node(fx_node, usual))
        return usual(fx_node) if usual is not None else _no_translation()

    def _complex(self, fx_node: Any, usual: Callable[[Any], Any] | None) -> Any:
        """Return the translation of an operator that takes or returns complex numbers, which are `Complex`."""
        converter = complex_numbers.CONVERTERS.get(fx_node.target.__name__)
        if converter is not None:
            return converter(self._node(fx_node, usual))
        complex_numbers.check_partwise(fx_node)
        whole = {node: self.env[node] for node in fx_node.all_input_nodes}
        parts = []
        for name in ("real", "imaginary"):
            of_name = {node: getattr(each, name) for node, each in whole.items() if isinstance(each, Complex)}
            self.env.update(of_name)
            parts.append(self._real(fx_node, usual))
        self.env.update(whole)
        return Complex(*parts)

    def _node(self, fx_node: Any, usual: Callable[[Any], Any] | None) -> Node:
        parameters = fx_node.target._schema.arguments
        values = {parameter.name: parameter.default_value for parameter in parameters}
        values.update(zip((parameter.name for parameter in parameters), fx_node.args, strict=False))
        values.update(fx_node.kwargs)
        arguments = {name: self._retrieve_args(_plain(value)) for name, value in values.items()}
        as_usual = functools.partial(usual, fx_node) if usual is not None else _no_translation
        name, result = fx_node.target.__name__, fx_node.meta.get("val")
        known = functools.partial(self._known_value, values)
        return Node(name, arguments, result, self.block_builder, as_usual, _used(fx_node), known)

    def _known_value(self, values: Mapping[str, Any], name: str) -> Any:
        """Return an argument as a number or a tensor of PyTorch, if it follows from a few numbers of the model."""
        try:
            return self._evaluated(values[name])
        except KeyError:
            return None

    def _evaluated(self, value: Any) -> Any:
        if not isinstance(value, torch.fx.Node):
            return value
        if value.op == "placeholder":
            return self.stored[value.name]
        if value.op != "call_function" or not _has_known_shape(value.meta.get("val")):
            raise KeyError(value.name)
        args, kwargs = torch.fx.node.map_arg((value.args, value.kwargs), self._evaluated)
        return value.target(*args, **kwargs)

    def _emitted(self, result: Any) -> Any:
        """Return a result as the other translations expect it."""
        if isinstance(result, tuple | list):
            return tuple(map(self._emitted, result))
        if isinstance(result, Complex):
            return Complex(self._emitted(result.real), self._emitted(result.imaginary))
        if isinstance(result, relax.Call):
            return self.block_builder.emit(result)
        return result


def _stored(program: Any) -> dict[str, torch.Tensor]:
    """Return the constants of a program of at most a few elements, by the names of the nodes that have them."""
    signature = program.graph_signature
    changed = set(signature.buffers_to_mutate.values())
    names = {**signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    values = {**program.constants, **program.state_dict}
    found = {node: values.get(name) for node, name in names.items() if name not in changed}
    return {node: each for node, each in found.items() if isinstance(each, torch.Tensor) and each.numel() <= _FEW}


def _used(fx_node: Any) -> frozenset[int] | None:
    """Return which of several results other nodes take; None if a node takes all of them together."""
    places: set[Any] = {user.args[1] if user.target is operator.getitem else None for user in fx_node.users}
    return None if None in places else frozenset(places)


def _origin(fx_node: Any) -> Any:
    """Return the operator that computed what a node returns."""
    return fx_node.args[0].target if fx_node.target is operator.getitem else fx_node.target


def _known(fx_node: Any) -> Any:
    """Return the results of an operator that have no elements, or whose operands have none; None for all others."""
    expected = fx_node.meta.get("val")
    results = expected if isinstance(expected, tuple | list) else (expected,)
    if not isinstance(fx_node.target, torch._ops.OpOverload) or not all(map(_has_known_shape, results)):
        return None
    values = [each.meta.get("val") for each in fx_node.all_input_nodes]
    if all(0 in each.shape for each in results):
        known = [relax.op.zeros(list(each.shape), dtype_of(each)) for each in results]
    elif values and all(isinstance(each, torch.Tensor) and 0 in each.shape for each in values):
        args, kwargs = torch.fx.node.map_arg((fx_node.args, fx_node.kwargs), _without_elements)
        computed = fx_node.target(*args, **kwargs)
        computed = computed if isinstance(expected, tuple | list) else (computed,)
        known = [relax.const(each.numpy(), dtype_of(each)) for each in computed]
    else:
        return None
    return tuple(known) if isinstance(expected, tuple | list) else known[0]


def _has_known_shape(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and all(isinstance(extent, int) for extent in value.shape)


def _without_elements(fx_node: Any) -> Any:
    value = fx_node.meta["val"]
    return torch.empty(tuple(value.shape), dtype=value.dtype)


def _plain(value: Any) -> Any:
    """Return an argument with lists of Python in place of those of ``torch.fx``, which are no lists."""
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _no_translation() -> Any:
    raise ValueError("has no translation for these arguments")


def _check(fx_node: Any, result: Any) -> None:
    if isinstance(result, Complex):
        _check(fx_node, result.real)
        _check(fx_node, result.imaginary)
    expected = fx_node.meta.get("val")
    if not isinstance(expected, torch.Tensor) or not fx_node.users or not is_tensor(result):
        return
    dtype, shape = str(result.ty.dtype), result.ty.shape
    if dtype != dtype_of(expected):
        raise ValueError(f"the translation has dtype {dtype}, and PyTorch's result {dtype_of(expected)}")
    if shape is None:
        raise ValueError("the translation has a shape that depends on values")
    if len(shape) != len(expected.shape) or not all(map(_agree, shape, expected.shape)):
        raise ValueError(
            f"the translation has shape {list(map(str, shape))}, and PyTorch's result {list(expected.shape)}"
        )


def _agree(extent: Any, expected: Any) -> bool:
    """Return whether an extent of TIR is equal to one of PyTorch, whose symbols have the same names.

    Both are computed for one value of each symbol, which follows from its name.
    """
    if isinstance(expected, int):
        return not is_known(extent) or int(extent) == expected
    expression, analyzer = expected.node.expr, tvm.sym.Analyzer()
    for var in tirx.analysis.undefined_vars(extent):
        analyzer.bind(var, tirx.IntImm("int64", _value(str(var.name))))
    found = analyzer.simplify(extent)
    wanted = expression.subs({symbol: _value(str(symbol)) for symbol in expression.free_symbols})
    return not (is_known(found) and wanted.is_Integer) or int(found) == int(wanted)


def _value(symbol: str) -> int:
    return 1009 + zlib.crc32(symbol.encode()) % 100_003
