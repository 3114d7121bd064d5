"""Buffers that a model changes in its calls, as inputs and outputs of its program.

``torch.export`` records such a buffer as an output ``BUFFER_MUTATION`` of the decomposed graph.
"""

from __future__ import annotations

import importlib
from typing import Any

from loopwright.errors import UnsupportedModel


def merged(program: Any) -> Any:
    """Return an exported program in which each buffer has one input, also if the model has several names for it.

    What one name changes is seen by the others, which a decomposed graph cannot say. The program itself is used up.
    """
    first: dict[int, Any] = {}
    others: dict[str, Any] = {}
    specs = program.graph_signature.input_specs
    for spec in filter(_is_buffer, specs):
        tensor = _value(program, spec.target)
        if first.setdefault(id(tensor), spec) is not spec:
            others[spec.arg.name] = first[id(tensor)].arg.name
    if not others:
        return program
    graph = program.graph
    inputs = _placeholders(graph)
    for name, kept in others.items():
        inputs[name].replace_all_uses_with(inputs[kept])
        graph.erase_node(inputs[name])
    kept_specs = [spec for spec in specs if spec.arg.name not in others]
    return _program(program, kept_specs, program.graph_signature.output_specs)


def functional(program: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a decomposed program whose changed buffers are its last inputs and outputs, and their names in order.

    The program itself is used up.
    """
    kinds = importlib.import_module("torch").export.graph_signature
    signature = program.graph_signature
    changed = [spec for spec in signature.input_specs if spec.target in signature.buffers_to_mutate.values()]
    names = tuple(spec.target for spec in changed)
    if not names:
        return program, ()
    graph = program.graph
    inputs = _placeholders(graph)
    last = list(inputs.values())[-1]
    for spec in changed:
        last.append(inputs[spec.arg.name])
        last = inputs[spec.arg.name]
    input_specs = [spec for spec in signature.input_specs if spec not in changed]
    input_specs += [kinds.InputSpec(kinds.InputKind.USER_INPUT, spec.arg, None) for spec in changed]

    [result] = graph.find_nodes(op="output")
    outputs = list(zip(signature.output_specs, result.args[0], strict=True))
    new = {spec.target: (spec, node) for spec, node in outputs if spec.kind is kinds.OutputKind.BUFFER_MUTATION}
    outputs = [(spec, node) for spec, node in outputs if spec.kind is not kinds.OutputKind.BUFFER_MUTATION]
    for name in names:
        spec, node = new[name]
        outputs.append((kinds.OutputSpec(kinds.OutputKind.USER_OUTPUT, spec.arg, None), node))
    result.args = (tuple(node for _, node in outputs),)
    return _program(program, input_specs, [spec for spec, _ in outputs]), names


def initial(program: Any, name: str) -> Any:
    """Return a copy of a buffer's value in a program, as ``tvm.runtime.Tensor``."""
    import tvm

    value = _value(program, name).detach()
    return tvm.runtime.from_dlpack(value.clone(memory_format=importlib.import_module("torch").contiguous_format))


def check_names(before: Any, after: Any) -> None:
    """Raise an `UnsupportedModel` if a call separated two names of a buffer: the program has one input for both."""
    if separated := _names(before) - _names(after):
        names = " and ".join(sorted(separated.pop()))
        raise UnsupportedModel(
            f"{names} are one buffer, and {type(before).__name__} assigns another tensor to one of them when it is "
            "called; change it in place, or make them two buffers"
        )


def overlapping(program: Any) -> list[str]:
    """Return the names of a program's buffers that are parts of the same memory."""
    names: dict[int, list[str]] = {}
    for spec in filter(_is_buffer, program.graph_signature.input_specs):
        memory = _value(program, spec.target).untyped_storage().data_ptr()
        names.setdefault(memory, []).append(spec.target)
    return sorted(name for each in names.values() if len(each) > 1 for name in each)


def _names(module: Any) -> set[frozenset[str]]:
    """Return the names of each buffer that has several."""
    names: dict[int, set[str]] = {}
    for name, tensor in module.named_buffers(remove_duplicate=False):
        names.setdefault(id(tensor), set()).add(name)
    return {frozenset(each) for each in names.values() if len(each) > 1}


def _value(program: Any, name: str) -> Any:
    """Return a buffer's value; buffers that are not saved with a model are among the constants."""
    return program.state_dict[name] if name in program.state_dict else program.constants[name]


def _is_buffer(spec: Any) -> bool:
    return spec.kind is importlib.import_module("torch").export.graph_signature.InputKind.BUFFER


def _placeholders(graph: Any) -> dict[str, Any]:
    return {node.name: node for node in graph.find_nodes(op="placeholder")}


def _program(program: Any, input_specs: list[Any], output_specs: list[Any]) -> Any:
    """Return a program, whose graph was changed, with another signature, and the constants that it names."""
    export = importlib.import_module("torch").export
    targets = {spec.target for spec in input_specs}
    return export.ExportedProgram(
        root=program.graph_module,
        graph=program.graph,
        graph_signature=export.graph_signature.ExportGraphSignature(input_specs, output_specs),
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants={name: value for name, value in program.constants.items() if name in targets},
        verifiers=program.verifiers,
    )
