"""TVM's importer of ONNX, with translations of our own, which says of what it does not take how it is called."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import onnx
import onnx.inliner
import onnx.shape_inference
import tvm
from onnx.reference import ReferenceEvaluator
from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend

from loopwright.codegen.graph.sources import SourceBuilder
from loopwright.frontends.onnx import (
    accumulation,
    attention,
    blocks,
    branches,
    division,
    elementary,
    extremes,
    fused,
    integers,
    loops,
    normalization,
    operators,
    pooling,
    products,
    quantisation,
    recurrent,
    reductions,
    resizing,
    shapes,
)
from loopwright.frontends.onnx.blocks import is_packed, packed_constant
from loopwright.frontends.onnx.node import Node, constant, is_empty
from loopwright.frontends.onnx.source import named

_CONVERTERS = {
    **operators.CONVERTERS,
    **accumulation.CONVERTERS,
    **attention.CONVERTERS,
    **blocks.CONVERTERS,
    **division.CONVERTERS,
    **elementary.CONVERTERS,
    **extremes.CONVERTERS,
    **fused.CONVERTERS,
    **integers.CONVERTERS,
    **loops.CONVERTERS,
    **normalization.CONVERTERS,
    **pooling.CONVERTERS,
    **products.CONVERTERS,
    **quantisation.CONVERTERS,
    **recurrent.CONVERTERS,
    **reductions.CONVERTERS,
    **resizing.CONVERTERS,
    **shapes.CONVERTERS,
}
_DOMAINS = frozenset({"", "ai.onnx", "com.microsoft"})
_EXPANDED = (
    "Attention",
    "BlackmanWindow",
    "CausalConvWithState",
    "CenterCropPad",
    "HammingWindow",
    "HannWindow",
    "LinearAttention",
    "NegativeLogLikelihoodLoss",
    "RotaryEmbedding",
    "SoftmaxCrossEntropyLoss",
    "SpaceToDepth",
    "SwiGLU",
    "Swish",
    "ThresholdedRelu",
)
"""Operators that TVM lacks, or translates in part, and that ONNX itself defines by simpler ones."""
_OF_EMPTY = frozenset({"Concat", "Identity", "Shape", "Size"})
"""Operators whose inputs may have no elements; others would read memory that nobody wrote."""
_NAMES = {"float": "float32", "double": "float64"}
"""Of types that ONNX calls otherwise."""
_BEFORE_OPTIMISER = "give the model as it was before the optimiser of ONNX Runtime or transformers wrote its operators"
_ADVICE = (
    (
        re.compile(r"QLinear|QAttention|QEmbed|QGemm|QOrdered|ConvInteger"),
        "quantise the float model with QuantFormat.QDQ",
    ),
    (re.compile(r"com\.(microsoft|ms\.internal)|operator (Attention|Fused|Skip|Rotary)"), _BEFORE_OPTIMISER),
    (
        re.compile(r"elements of u?int[24]\b"),
        "let nothing but DequantizeLinear take constants of 4 bits, and use 8 bits else",
    ),
    (re.compile(""), "write that part with other operators, or export it for another opset"),
)
"""What to do about a part that has no translation: the first row whose pattern its reason has."""
_FEW = 64
"""Numbers of constants with which the importer computes: those of shapes, not those of weights."""
_ELEMENTS = re.compile(r"bool|u?int(8|16|32|64)|b?float(16|32|64)")
"""Types whose rounding is that of ONNX. Narrower ones are not: TVM overflows where ONNX saturates."""


def import_model(model: onnx.ModelProto) -> Any:
    """Return a model as a Relax module.

    Raises:
        ValueError: the model has an operator that has no translation; the message names it.
    """
    model = named(_expanded(model))
    opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 1)
    # The importer prints what it fails at.
    with contextlib.redirect_stdout(io.StringIO()):
        importer = _Importer({}, "float32", sanitize=True)
        module = importer.bb.with_sources(importer.from_onnx(model.graph, opset))
    if importer.is_checked:
        main = module["main"]
        module["main"] = relax.Function(main.params, main.body, main.ret_ty, is_pure=False, attrs=main.attrs)
    return module


def advice(reason: str) -> str:
    """Return what to do about a part of a model that has no translation, for some reason."""
    return next(text for pattern, text in _ADVICE if pattern.search(reason))


def translated() -> set[str]:
    """Return the names of the operators that have a translation."""
    return {*onnx_frontend._get_convert_map(), *_CONVERTERS, *_EXPANDED, "If"}


def _expanded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without calls of its own functions, and of those that ONNX defines."""
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    if not any(_is_function(node) for node in _all_nodes(model.graph)):
        return model
    typed = onnx.shape_inference.infer_shapes(model)
    for node in _all_nodes(typed.graph):
        if _is_function(node):
            _complete(node)
    # The inliner asks for the types of all inputs, also of weights, and of those left out, whose name is empty.
    typed.graph.value_info.append(onnx.ValueInfoProto(name="", type=onnx.TypeProto()))
    typed.graph.value_info.extend(
        onnx.helper.make_tensor_value_info(each.name, each.data_type, each.dims) for each in model.graph.initializer
    )
    return onnx.inliner.inline_selected_functions(
        typed, [("", name) for name in _EXPANDED], inline_schema_functions=True
    )


def _is_function(node: onnx.NodeProto) -> bool:
    return node.op_type in _EXPANDED and node.domain in ("", "ai.onnx")


def _complete(node: onnx.NodeProto) -> None:
    """Give a node its defaults: the inliner knows those attributes only that are there."""
    present = {attribute.name for attribute in node.attribute}
    for name, attribute in onnx.defs.get_schema(node.op_type).attributes.items():
        if name not in present and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _all_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return the nodes of a graph and of the graphs in it."""
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return [*graph.node, *(node for each in inner for node in _all_nodes(each))]


class _Importer(onnx_frontend.ONNXGraphImporter):
    _nodes: dict[str, Any]
    bb: SourceBuilder
    is_checked = False
    """Whether calls may fail."""

    def __init__(self, *options: Any, **named: Any) -> None:
        super().__init__(*options, **named)
        self.bb = SourceBuilder()

    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        unknown = {
            f"{node.domain}.{node.op_type}".lstrip(".")
            for node in _all_nodes(graph)
            if node.op_type not in translated() or node.domain not in _DOMAINS
        }
        if unknown:
            raise ValueError(f"operators {', '.join(sorted(unknown))}")

    def _parse_graph_input(self, graph: onnx.GraphProto) -> None:
        for each in graph.input:
            if each.type.tensor_type.elem_type == onnx.TensorProto.STRING:
                operator = next((node.op_type for node in graph.node if each.name in node.input), "Identity")
                raise ValueError(f"operator {operator}, elements of string")
        super()._parse_graph_input(graph)

    def _parse_graph_initializers(self, graph: onnx.GraphProto) -> None:
        for each in graph.initializer:
            if _is_packed(graph, each):
                continue
            dtype = onnx.TensorProto.DataType.Name(each.data_type).lower()
            if not _ELEMENTS.fullmatch(_NAMES.get(dtype, dtype)):
                operator = next((node.op_type for node in graph.node if each.name in node.input), "Identity")
                raise ValueError(f"operator {operator}, elements of {dtype}")
        if any(map(is_packed, graph.initializer)):
            graph = onnx.GraphProto(initializer=[each for each in graph.initializer if not is_packed(each)])
        super()._parse_graph_initializers(graph)

    def _convert_operator(self, op_name: str, inputs: Any, attrs: dict[str, Any], opset: int) -> Any:
        usual = super()._convert_operator
        node = Node(op_name, self, inputs, attrs, opset, lambda inputs, attrs: usual(op_name, inputs, attrs, opset))
        outer = self.bb.source
        self.bb.source = outer or attrs["tvm_custom"]["name"]
        try:
            for each in inputs:
                _check_elements(each)
            result = _computed(node)
            # An empty constant stands for what is left out.
            if op_name not in _OF_EMPTY and any(is_empty(each) and constant(each) is None for each in inputs):
                raise ValueError("of a tensor without elements")
            if result is None:
                result = _CONVERTERS.get(op_name, Node.as_usual)(node)
            result = self.bb.normalize(result) if isinstance(result, relax.Expr) else result
            if isinstance(result, tvm.ir.Call) and isinstance(result.ty, relax.TensorType):
                result = self.bb.emit(result)
            _check_elements(result)
        except Exception as error:
            if str(error).startswith("operator "):
                raise  # it is in a graph within this operator
            raise ValueError(f"operator {op_name}, {error}") from error
        finally:
            self.bb.source = outer
        return result

    def _construct_nodes(self, graph: onnx.GraphProto) -> None:
        """Let outputs that are shapes, or one extent of a shape, be tensors, as they are in ONNX."""
        for each in filter(is_packed, graph.initializer):
            self._nodes[each.name] = packed_constant(self.bb.emit, each)
        try:
            if any(node.op_type == "If" for node in graph.node):
                for node in graph.node:
                    self._construct_node(node)
            else:
                super()._construct_nodes(graph)
        except ValueError as error:
            if "ShapeExpr" not in str(error):
                raise
            raise ValueError(
                "it computes with a shape that has symbols; give their values, as shapes={'name': value}"
            ) from error
        for output in graph.output:
            self._nodes[output.name] = self.tensor(self._nodes[output.name])

    def _construct_node(self, node: onnx.NodeProto) -> None:
        if node.op_type == "If":
            results = branches.either(self, node, self._nodes[node.input[0]])
            self._nodes.update(zip(node.output, results, strict=True))
        else:
            super()._construct_nodes(onnx.GraphProto(node=[node]))

    def check(self, condition: Any, message: str) -> None:
        """Let calls fail in which a condition does not hold."""
        self.bb.emit(relax.op.assert_op(condition, format=message.replace("{", "{{").replace("}", "}}")))
        self.is_checked = True

    def call(self, graph: onnx.GraphProto, values: list[Any]) -> list[Any]:
        """Return the outputs of a graph within an operator for values of its inputs."""
        outer = self._nodes
        self._nodes = {**outer, **dict(zip((each.name for each in graph.input), values, strict=True))}
        try:
            self._parse_graph_initializers(graph)
            self._construct_nodes(graph)
            return [self._nodes[each.name] for each in graph.output]
        finally:
            self._nodes = outer

    def tensor(self, value: Any) -> Any:
        """Return a value as a tensor; TVM's importer keeps shapes as such."""
        if not isinstance(value, relax.Expr) or isinstance(value.ty, (relax.TensorType, relax.TupleType)):
            return value
        if (known := constant(value)) is not None:
            return relax.const(known, "int64")
        if isinstance(value.ty, relax.ShapeType):
            return self.bb.emit(relax.op.shape_to_tensor(value))
        tensor = self.bb.emit(relax.op.shape_to_tensor(relax.ShapeExpr([value])))
        return self.bb.emit(relax.op.reshape(tensor, []))


def _is_packed(graph: onnx.GraphProto, tensor: onnx.TensorProto) -> bool:
    """Return whether a constant has elements of 4 bits, and is dequantised alone: nothing else takes such elements."""
    users = [node.op_type for node in graph.node if tensor.name in node.input]
    return is_packed(tensor) and set(users) <= {"DequantizeLinear"}


def _computed(node: Node) -> Any:
    """Return what an operator makes of constants, if these are a few numbers; None if not.

    Such are shapes that a model computes: TVM takes them as constants only.
    """
    known = [None if each is None else constant(each) for each in node.inputs]
    present = [value for value in known if value is not None]
    if not present or any(value is None for value, each in zip(known, node.inputs, strict=True) if each is not None):
        return None
    attributes = {name: value for name, value in node.attributes.items() if name != "tvm_custom"}
    if node.outputs > 1 or sum(value.size for value in present) > _FEW or "body" in attributes:
        return None
    names = ["" if value is None else f"x{place}" for place, value in enumerate(known)]
    single = onnx.helper.make_node(node.operator, names, ["y"], **attributes)
    values = {name: value for name, value in zip(names, known, strict=True) if name}
    try:
        (result,) = ReferenceEvaluator(single, opsets={"": node.opset}).run(None, values)
    except Exception:
        return None  # ONNX computes most operators itself, not all
    return relax.const(result, str(result.dtype)) if 0 < result.size <= _FEW else None


def _check_elements(value: Any) -> None:
    dtype = str(getattr(getattr(value, "ty", None), "dtype", None) or "bool").removeprefix("T.")
    if not _ELEMENTS.fullmatch(dtype):
        raise ValueError(f"elements of {dtype}")
