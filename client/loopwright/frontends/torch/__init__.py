"""PyTorch models: modules, exported programs (also saved ones), and FX graphs."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopwright.errors import UnsupportedModel, first_line
from loopwright.extras import require_tvm
from loopwright.frontends.program import Program, detach
from loopwright.frontends.torch import buffers, state
from loopwright.frontends.torch import dims as torch_dims
from loopwright.frontends.torch.reference import TorchReference
from loopwright.frontends.torch.values import flattened, is_tree, replaced, tensors
from loopwright.model import Model

ACCEPTS = (
    "a torch.nn.Module or FX GraphModule with example_inputs, a torch.export.ExportedProgram or the path of a .pt2 file"
)
OPTIONS = frozenset({"example_inputs", "state"})
_MOST_CLASSES = 20
"""Of inputs and outputs of a saved program, each of which takes another try to load it."""
_exporting = threading.RLock()
"""PyTorch changes tables of its dispatcher while it exports or decomposes a model, and two threads at once fail."""


def accepts(model: Any) -> bool:
    if isinstance(model, str | os.PathLike):
        return str(model).endswith(".pt2") and "\n" not in str(model)
    # Whoever holds a PyTorch model has imported PyTorch already.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, (torch.nn.Module, torch.export.ExportedProgram))


def to_program(source: Model) -> Program:
    """Translate by TVM's importers; a module is captured by ``torch.export`` first.

    A copy of the module is run, so that its own buffers stay as they are.
    """
    require_tvm()
    with warnings.catch_warnings():
        # PyTorch warns of a class of its own whenever an exported program is copied.
        warnings.filterwarnings("ignore", message=".*LeafSpec", category=FutureWarning)
        program = exported(source)
        decomposed = _decomposed(program)
        names: tuple[str, ...] = ()
        if source.state is not None:
            decomposed, names = buffers.functional(decomposed)
        detached = detach(_translated(decomposed), TorchReference(program, names))
        return replace(detached, buffers={name: buffers.initial(program, name) for name in names})


def exported(source: Model) -> Any:
    """Return a model as an exported program. Raises as `to_program` does."""
    model = source.model
    if isinstance(model, str | os.PathLike) and not Path(model).exists():
        raise FileNotFoundError(f"no such file: {model}")
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise UnsupportedModel(f"to read {model}, install PyTorch: pip install torch ({error})") from error
    if isinstance(model, str | os.PathLike):
        model = _loaded(os.fspath(model))
    if isinstance(model, torch.export.ExportedProgram):
        if source.example_inputs is not None:
            raise TypeError("an ExportedProgram knows its inputs; leave example_inputs out")
        return model
    if isinstance(model, torch.jit.ScriptModule):
        raise UnsupportedModel(
            f"{type(model).__name__} is a module of torch.jit, which torch.export cannot capture; give the "
            "torch.nn.Module that was traced or scripted"
        )
    inputs, named = _inputs(model, source.example_inputs)
    own = state.isolated(model)
    outputs = _outputs(own, inputs, named)
    buffers.check_names(model, own)
    own = state.isolated(model)
    if is_tree((inputs, named), outputs):
        program = export(type(model).__name__, own, inputs, named)
    else:
        flat, by_name = flattened(own, inputs, named)
        program = export(type(model).__name__, flat, (), by_name)
    return buffers.merged(program)


def _loaded(path: str) -> Any:
    """Load an exported program. The modules of the classes of its inputs and outputs are imported."""
    torch = importlib.import_module("torch")
    complaints: list[str] = []
    for _ in range(_MOST_CLASSES):
        try:
            with _recorded("torch.export", complaints):
                return torch.export.load(path)
        except Exception as error:
            missing = re.search(r"Deserializing ([\w.]+)\.\w+ in pytree is not registered", "\n".join(complaints))
            if missing is None or missing[1] in sys.modules:
                reason = (complaints[-1].strip().splitlines() or [""])[-1] if complaints else first_line(error)
                raise UnsupportedModel(f"{path} is no program that torch.export.save wrote: {reason}") from error
            try:
                importlib.import_module(missing[1])
            except ImportError:
                raise UnsupportedModel(
                    f"the program in {path} takes or returns objects of {missing[1]}, which is not installed here"
                ) from error
            complaints.clear()
    raise UnsupportedModel(f"the program in {path} takes and returns objects of too many classes")


@contextlib.contextmanager
def _recorded(name: str, texts: list[str]) -> Iterator[None]:
    """Keep what a library logs out of the terminal, and in ``texts``."""

    class Recorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(logging.Formatter().format(record))

    log, recorder = logging.getLogger(name), Recorder()
    propagates, handlers = log.propagate, log.handlers
    log.propagate, log.handlers = False, [recorder]
    try:
        yield
    finally:
        log.propagate, log.handlers = propagates, handlers


def _inputs(model: Any, example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the example inputs by position and by name."""
    torch = importlib.import_module("torch")
    name = type(model).__name__
    if example_inputs is None:
        raise TypeError(
            f"{name} needs example_inputs=(tensor, …), or {{'name': tensor, …}}: its shapes and dtypes are what is "
            "tuned for"
        )
    tensors = torch.utils._pytree.tree_map(_tensor, example_inputs)
    named = dict(tensors) if isinstance(tensors, Mapping) else {}
    return () if named else (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors), named


def _outputs(model: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the model's outputs for copies of its example inputs: caches change as they are used."""
    torch = importlib.import_module("torch")
    name = type(model).__name__

    def call() -> Any:
        args, kwargs = replaced((inputs, named), {})
        return model(*args, **kwargs)

    try:
        with torch.no_grad():
            return state.run(model, call)
    except UnsupportedModel:
        raise
    except Exception as error:
        raise UnsupportedModel(
            f"{name} does not run on its example_inputs: {first_line(error)}; give them as the model is called, "
            "model(*example_inputs), or model(**example_inputs) if they have names"
        ) from error


def _tensor(value: Any) -> Any:
    """Return an example input with dense tensors of PyTorch in place of other tensors and arrays."""
    torch = importlib.import_module("torch")
    if not isinstance(value, torch.Tensor):
        # Whoever holds an array has imported NumPy already.
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray):
            return torch.from_numpy(numpy.array(value))
        if hasattr(value, "__dlpack__"):
            return torch.from_dlpack(value)
        return replaced(value, {id(tensor): _dense(tensor) for tensor in tensors(value).values()})
    return _dense(value)


def _dense(value: Any) -> Any:
    torch = importlib.import_module("torch")
    if value.layout is not torch.strided:
        raise UnsupportedModel(f"an example input is a sparse tensor ({value.layout}); give a dense one, .to_dense()")
    if value.device.type == "meta":
        raise UnsupportedModel("an example input is on the meta device, and has no values; give one that has, on cpu")
    return value.contiguous()


def export(name: str, module: Any, inputs: tuple[Any, ...], named: Mapping[str, Any] | None = None) -> Any:
    """Return a module as an exported program.

    Raises:
        UnsupportedModel: PyTorch cannot capture it; the message calls it by ``name``.
    """
    torch = importlib.import_module("torch")
    try:
        with _exporting, _quietly():
            return torch.export.export(module, inputs, dict(named or {}))
    except Exception as error:
        if "missing nn_module_stack metadata" in str(error):
            raise UnsupportedModel(
                f"torch.export cannot capture {name}, which assigns an input to a buffer; write buffer.copy_(input)"
            ) from error
        if "__obj_flatten__" in str(error):
            raise UnsupportedModel(
                f"torch.export cannot capture {name}, whose weights torch.ao.quantization has packed for its kernels; "
                "quantise the float model by torchao's quantize_ or its prepare_pt2e and convert_pt2e"
            ) from error
        raise UnsupportedModel(
            f"torch.export cannot capture {name}{_where(error)}: {first_line(error)}; a branch or a "
            "loop on the values of tensors must be written with torch.where, torch.cond or a fixed count"
        ) from error


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep what PyTorch prints of a model that it cannot capture, its graphs and warnings, out of the terminal."""
    said, log = io.StringIO(), logging.getLogger("torch.fx.experimental.symbolic_shapes")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stderr(said):
            yield
    finally:
        log.setLevel(level)
    print(said.getvalue(), end="", file=sys.stderr)


def _where(error: BaseException) -> str:
    """Return the line of the model's own code that failed, which PyTorch's message may not name."""
    pytorch = str(Path(sys.modules["torch"].__file__ or "").parent)
    frames = traceback.extract_tb(error.__traceback__)[2:]  # behind export and torch.export.export
    own = [frame for frame in frames if not frame.filename.startswith((pytorch, "<"))]
    return f" at {own[-1].filename}:{own[-1].lineno}, `{own[-1].line}`" if own else ""


def _translated(program: Any) -> Any:
    # It imports TVM and PyTorch.
    importer = importlib.import_module("loopwright.frontends.torch.importer")
    state.check(program)
    try:
        mod = importer.import_program(program)
    except Exception as error:
        raise UnsupportedModel(
            f"there is no translation of a part of this model: {first_line(error)}; write that part with other "
            "operators, or tune the parts around it"
        ) from error
    return torch_dims.named(mod, program)


def _decomposed(program: Any) -> Any:
    """Return a program in the core operators of PyTorch; TVM takes sparse weights as they are."""
    torch = importlib.import_module("torch")
    values = [*program.state_dict.values(), *program.constants.values()]
    if any(isinstance(value, torch.Tensor) and value.layout is not torch.strided for value in values):
        return program
    try:
        # It imports PyTorch.
        decompositions = importlib.import_module("loopwright.frontends.torch.decompositions")
        with _exporting:
            return program.run_decompositions(decompositions.table(program))
    except Exception as error:
        if overlapping := buffers.overlapping(program):
            raise UnsupportedModel(
                f"the buffers {', '.join(overlapping)} share memory, and the model changes one of them in place; give "
                "each memory of its own (clone)"
            ) from error
        raise UnsupportedModel(
            f"torch.export cannot decompose this model into core operators: {first_line(error)}; write that part with "
            "other operators, or tune the parts around it"
        ) from error
