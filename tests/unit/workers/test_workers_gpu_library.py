"""What PyTorch computes of the same inputs, on the CPU here: the device is a parameter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import tvm
from torch.nn import functional
from tvm import te, topi

from tests.support.workloads import LLVM
from tuner.workload import make_workload
from workers.device import gpu_library
from workers.device.build import artifact_of, load
from workers.device.check import expected as run_reference
from workers.device.programs import called
from workers.messages import BuildRequest

Array = np.ndarray
CPU = tvm.runtime.device("cpu", 0)


def draw(*shape: int, dtype: str = "float32") -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape) * 1000 + len(shape))
    if dtype == "int8":
        return torch.randint(-128, 128, shape, generator=generator, dtype=torch.int8)
    return torch.randn(*shape, generator=generator).to(getattr(torch, dtype))


def array(tensor: torch.Tensor) -> Array:
    if tensor.dtype == torch.bfloat16:
        return tensor.float().numpy().astype(ml_dtypes.bfloat16)
    return tensor.numpy()


def found(inputs: list[torch.Tensor], result: torch.Tensor) -> torch.Tensor | None:
    """Return the result of the second call of what is found for a function with this result, as it is timed."""
    arrays, expected = [array(tensor) for tensor in inputs], array(result)
    arguments = [*arrays, np.zeros_like(expected)]
    call = gpu_library.find(torch, arguments, [False] * len(inputs) + [True], [*arrays, expected], CPU)
    if call is None:
        return None
    call()
    return call()


A, B, BIAS = draw(24, 16), draw(16, 40), draw(40)
IMAGE, WEIGHT = draw(2, 8, 11, 13), draw(6, 8, 3, 3)
LAST = IMAGE.permute(0, 2, 3, 1).contiguous()


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda a, b: a @ b, [A, B]),
        (lambda a, b: a @ b.T, [A, draw(40, 16)]),
        (lambda b, a: a @ b, [B, A]),
        (lambda a, b: a @ b, [draw(16, 16), draw(16, 16).T.contiguous()]),
        (lambda a, b, c: a @ b + c, [A, B, BIAS]),
        (lambda a, b, c: a @ b + c, [A, B, draw(24, 40)]),
        (lambda a, b, c: torch.relu(a @ b.T + c), [A, draw(40, 16), BIAS]),
        # The two differ where values are about 2, by less than the tolerance beside a value of 5.
        (lambda a, b, c: functional.gelu(a @ b + c), [A / 4, B / 4, BIAS / 4]),
        (lambda a, b, c: functional.gelu(a @ b + c, approximate="tanh"), [A / 4, B / 4, BIAS / 4]),
        (lambda a, b: functional.silu(a @ b), [A, B]),
        (lambda a, b, c, d: torch.relu(a @ b + c + d), [A, B, BIAS, draw(24, 40)]),
        (lambda a, b: a @ b, [draw(3, 24, 16), draw(3, 16, 40)]),
        (lambda a, b: a @ b.transpose(-1, -2), [draw(2, 3, 24, 16), draw(2, 3, 40, 16)]),
        (lambda a, b, c: torch.relu(a @ b + c), [draw(3, 24, 16), B, BIAS]),
        (lambda a, b: a @ b, [A, draw(3, 16, 40)]),
        (lambda a, b: a @ b, [A.double(), B.double()]),
    ],
    ids=[
        *("plain", "transposed", "the factors in the other order", "square", "bias", "sum", "linear layer", "gelu"),
        *("gelu by tanh", "silu", "bias and sum", "batch", "transposed batch", "linear layer of a batch"),
        *("one by a batch", "float64"),
    ],
)
def test_products_are_found(function: Callable[..., torch.Tensor], inputs: list[torch.Tensor]) -> None:
    wanted = function(*inputs)
    torch.testing.assert_close(found(inputs, wanted), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("result", [None, "float32"], ids=["same result", "float32"])
@pytest.mark.parametrize("has_bias", [False, True], ids=["plain", "bias"])
def test_products_of_narrow_types_are_found(dtype: str, result: str | None, has_bias: bool) -> None:
    """The result may be float32. The CPU has no such operator, and the narrower result is compared as such."""
    a, b = draw(24, 16, dtype=dtype), draw(16, 40, dtype=dtype)
    out = getattr(torch, result or dtype)
    inputs = [a, b, BIAS.to(out)] if has_bias else [a, b]
    wanted = a.float() @ b.float() + (inputs[2].float() if has_bias else 0)
    got = found(inputs, wanted.to(out))
    assert got is not None
    assert got.dtype == a.dtype
    torch.testing.assert_close(got.float(), wanted, rtol=5e-2, atol=0.2)


def test_products_of_integers_are_found_where_they_are_exact() -> None:
    a, b = draw(24, 16, dtype="int8"), draw(16, 40, dtype="int8")
    wanted = a.int() @ b.int()
    torch.testing.assert_close(found([a, b], wanted), wanted)
    assert found([a, b], wanted + (wanted == wanted.max())) is None


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 1, 3, (0, 2)], ids=str)
def test_convolutions_are_found(stride: int, padding: Any) -> None:
    wanted = functional.conv2d(IMAGE, WEIGHT, stride=stride, padding=padding)
    torch.testing.assert_close(found([IMAGE, WEIGHT], wanted), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x, w, b: torch.relu(functional.conv2d(x, w, b, padding=1)), [IMAGE, WEIGHT, draw(6)]),
        (lambda x, w, b: functional.conv2d(x, w) + b, [IMAGE, WEIGHT, draw(1, 6, 1, 1)]),
        (
            lambda x, w, b, y: torch.relu(functional.conv2d(x, w, padding=1) + b + y),
            [IMAGE, WEIGHT, draw(1, 6, 1, 1), draw(2, 6, 11, 13)],
        ),
        (lambda x, w: functional.conv2d(x, w, padding=1, groups=8), [IMAGE, draw(8, 1, 3, 3)]),
        (lambda x, w: functional.conv2d(x, w, stride=2, groups=2), [IMAGE, draw(6, 4, 1, 1)]),
        (
            lambda x, w, b: torch.relu(
                functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), b, padding=1).permute(0, 2, 3, 1)
            ).contiguous(),
            [LAST, draw(3, 3, 8, 6), draw(6)],
        ),
    ],
    ids=["bias and relu", "bias with axes", "residual", "depthwise", "groups", "channels last"],
)
def test_convolutions_with_more_to_them_are_found(
    function: Callable[..., torch.Tensor], inputs: list[torch.Tensor]
) -> None:
    wanted = function(*inputs)
    torch.testing.assert_close(found(inputs, wanted), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x: torch.softmax(x, -1), [A]),
        (lambda x: torch.log_softmax(x, -1), [draw(2, 3, 16)]),
        (lambda x: torch.softmax(x.float(), -1), [A.half()]),
        (lambda x: functional.layer_norm(x, (16,)), [A]),
        (lambda x, scale: functional.layer_norm(x, (16,), scale), [A, draw(16)]),
        (lambda x, scale, shift: functional.layer_norm(x, (16,), scale, shift, 1e-6), [A, draw(16), draw(1, 16)[0]]),
        (lambda x, scale, shift: functional.layer_norm(x, (16,), scale[0], shift[0]), [A, draw(1, 16), draw(1, 16)]),
    ],
    ids=["softmax", "its logarithm", "wider", "norm", "scaled", "scaled and shifted", "factors with two axes"],
)
def test_softmax_and_layer_norm_are_found(function: Callable[..., torch.Tensor], inputs: list[torch.Tensor]) -> None:
    wanted = function(*inputs)
    torch.testing.assert_close(found(inputs, wanted), wanted, rtol=1e-4, atol=1e-4)


def test_softmax_of_bfloat16_is_found() -> None:
    x = draw(24, 16, dtype="bfloat16")
    got = found([x], torch.softmax(x, -1))
    assert got is not None
    assert got.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("wanted", "inputs"),
    [
        (torch.exp(A @ B), [A, B]),
        (A @ B * 1.01, [A, B]),
        (A + A.flip(0), [A, A.flip(0)]),
        (A @ B, [A, B, BIAS]),
        (A.sum(1), [A]),
        (torch.exp(A), [A]),
        (torch.softmax(A, 0), [A]),
        (A @ B, [A.double(), B]),
        (torch.zeros(24, 41), [A, B]),
        (torch.zeros(24, 40), [A, B[:15].contiguous()]),
        (functional.conv2d(IMAGE, WEIGHT, dilation=2), [IMAGE, WEIGHT]),
        (torch.zeros(2, 6, 30, 30), [IMAGE, WEIGHT]),
        (torch.zeros(2, 6, 9, 11), [IMAGE, draw(6, 5, 3, 3)]),
        (A @ B > 0, [A, B]),
        (torch.tensor(1.0), []),
        (A @ B, [A, B, BIAS, BIAS, BIAS]),
    ],
    ids=[
        *("more", "scaled", "no product", "one left over", "reduction", "elementwise", "another axis", "mixed types"),
        *("another result", "factors that do not fit", "dilation", "another image", "another weight", "booleans"),
        *("no input", "many inputs"),
    ],
)
def test_other_functions_have_no_call(wanted: torch.Tensor, inputs: list[torch.Tensor]) -> None:
    assert found(inputs, wanted) is None


def placeholders(*args: tuple[tuple[int, ...], str]) -> list[te.Tensor]:
    return [te.placeholder(shape, dtype, name=f"x{number}") for number, (shape, dtype) in enumerate(args)]


def _linear() -> list[te.Tensor]:
    x, w, bias = placeholders(((24, 16), "float32"), ((40, 16), "float32"), ((40,), "float32"))
    return [x, w, bias, topi.nn.relu(topi.add(topi.nn.dense(x, w), bias))]


def _convolution() -> list[te.Tensor]:
    x, w, bias = placeholders(((1, 8, 12, 12), "float32"), ((8, 8, 3, 3), "float32"), ((1, 8, 1, 1), "float32"))
    return [x, w, bias, topi.nn.relu(topi.add(topi.nn.conv2d_nchw(x, w, 2, 1, 1), bias))]


def _depthwise() -> list[te.Tensor]:
    x, w = placeholders(((1, 8, 12, 12), "float32"), ((8, 1, 3, 3), "float32"))
    return [x, w, topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1)]


def _layer_norm() -> list[te.Tensor]:
    x, scale, shift = placeholders(((24, 16), "float32"), ((16,), "float32"), ((16,), "float32"))
    return [x, scale, shift, topi.nn.layer_norm(x, scale, shift, [1], 1e-5)]


def _softmax() -> list[te.Tensor]:
    [x] = placeholders(((4, 6, 16), "float32"))
    return [x, topi.nn.softmax(x)]


def _product(dtype: str, sums: str) -> list[te.Tensor]:
    a, b = placeholders(((24, 16), dtype), ((16, 40), dtype))
    return [a, b, topi.nn.matmul(a, b, out_dtype=sums)]


@pytest.mark.parametrize(
    "function",
    [
        *(_linear, _convolution, _depthwise, _layer_norm, _softmax),
        *(
            partial(_product, *dtypes)
            for dtypes in (("float16", "float32"), ("bfloat16", "bfloat16"), ("int8", "int32"))
        ),
    ],
    ids=["linear", "convolution", "depthwise", "layer norm", "softmax", "float16", "bfloat16", "int8"],
)
def test_functions_of_tvm_are_found_on_the_inputs_of_a_race(
    function: Callable[[], list[te.Tensor]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workload = make_workload(te.create_prim_func(function()), "main")
    artifact = artifact_of(BuildRequest(workload.module_json, None, LLVM))
    reference = partial(called, load(artifact), artifact, device=CPU)
    outputs = [False] * (len(workload.args) - 1) + [True]
    results = run_reference(reference, workload.args, outputs, "normal", 3)
    assert gpu_library.find(torch, results.inputs, outputs, results.results, CPU) is not None


def test_functions_with_several_results_have_no_call() -> None:
    a, b, result = A.numpy(), B.numpy(), (A @ B).numpy()
    assert (
        gpu_library.find(torch, [a, b, result, result], [False] * 2 + [True] * 2, [a, b, result, result], CPU) is None
    )


def test_inputs_are_left_as_they_are() -> None:
    before = A.clone()
    assert found([A], torch.softmax(A, -1)) is not None
    assert found([A, B, BIAS], torch.relu(A @ B + BIAS)) is not None
    torch.testing.assert_close(A, before)


PRODUCT = ([A.numpy(), B.numpy(), np.zeros((24, 40), "float32")], [False, False, True])
RESULTS = [A.numpy(), B.numpy(), (A @ B).numpy()]


@pytest.mark.parametrize("error", [ModuleNotFoundError("torch"), OSError("libcudart.so"), AttributeError("_C")])
def test_a_pytorch_that_does_not_load_is_no_yardstick(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def failing(name: str) -> Any:
        raise error

    monkeypatch.setattr(gpu_library, "import_module", failing)
    assert gpu_library.loaded() is None
    assert gpu_library.yardstick(*PRODUCT, RESULTS, CPU) is None


def test_a_pytorch_without_cuda_is_no_yardstick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu_library.yardstick(*PRODUCT, RESULTS, CPU) is None


def test_what_keeps_tvm_from_loading_pytorch_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[bool] = []
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(gpu_library, "import_module", lambda name: loaded.append(name in sys.modules))
    gpu_library.loaded()
    assert loaded == [False]


class FakeCuda:
    """As ``torch.cuda``: its clock goes on by 2 ms a call, and events know it once they have happened."""

    def __init__(self) -> None:
        self.milliseconds = 0.0
        self.log: list[str] = []

    def call(self) -> None:
        self.milliseconds += 2.0
        self.log.append("call")

    def Event(self, *, enable_timing: bool) -> FakeEvent:
        assert enable_timing
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda = cuda

    def record(self) -> None:
        self.milliseconds = self._cuda.milliseconds
        self._cuda.log.append("event")

    def synchronize(self) -> None:
        self._cuda.log.append("wait")

    def elapsed_time(self, end: FakeEvent) -> float:
        assert self._cuda.log[-1] == "wait"
        return end.milliseconds - self.milliseconds


@pytest.mark.parametrize(
    ("number", "log"),
    [(0, ["event", "call", "event", "wait"]), (3, ["call", "event", *["call"] * 3, "event", "wait"])],
    ids=["a cold call", "three calls after one that does not count"],
)
def test_calls_are_timed_by_events(number: int, log: list[str]) -> None:
    cuda = FakeCuda()
    assert gpu_library.timed(cuda, cuda.call)(number) == pytest.approx(2e-3)
    assert cuda.log == log


@pytest.fixture
def _own_precision() -> Iterator[None]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark
    matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = True, True, False
    yield
    matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = before


@pytest.mark.usefixtures("_own_precision")
def test_a_yardstick_computes_in_float32_and_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda()
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch.cuda, "Event", cuda.Event)
    yardstick = gpu_library.yardstick(*PRODUCT, RESULTS, CPU)
    assert yardstick is not None
    assert yardstick.name == gpu_library.library_name(torch)
    assert yardstick.seconds(1) == 0.0
    assert chosen == [CPU.index]
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32
    assert torch.backends.cudnn.benchmark


@pytest.mark.usefixtures("_own_precision")
def test_a_yardstick_has_tf32_where_the_function_may_use_it_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    found = gpu_library.yardstick(*PRODUCT, RESULTS, CPU, math="tf32")
    assert found is not None
    assert found.name.endswith(", TF32 permitted")
    assert torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.cudnn.allow_tf32


class FakeTorch:
    class version:
        cuda: str | None = "13.0"

    class backends:
        class cudnn:
            number: int | None = 91002

            @classmethod
            def version(cls) -> int | None:
                return cls.number

    __version__ = "2.13.0+cu130"


@pytest.mark.parametrize(
    ("cuda", "cudnn", "name"),
    [
        ("13.0", 91002, "PyTorch 2.13.0 (cuBLAS of CUDA 13.0, cuDNN 9.10.2)"),
        ("12.1", 8902, "PyTorch 2.13.0 (cuBLAS of CUDA 12.1, cuDNN 8.9.2)"),
        ("13.0", None, "PyTorch 2.13.0 (cuBLAS of CUDA 13.0)"),
        (None, None, "PyTorch 2.13.0"),
    ],
)
def test_its_name_says_which_libraries(
    monkeypatch: pytest.MonkeyPatch, cuda: str | None, cudnn: int | None, name: str
) -> None:
    monkeypatch.setattr(FakeTorch.version, "cuda", cuda)
    monkeypatch.setattr(FakeTorch.backends.cudnn, "number", cudnn)
    assert gpu_library.library_name(FakeTorch) == name
