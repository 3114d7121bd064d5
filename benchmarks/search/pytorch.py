"""PyTorch's own operator for each workload of the comparison, in the memory layout that PyTorch prefers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional
from tvm.s_tir.meta_schedule.testing.te_workload import CONFIGS

Array = npt.NDArray[np.float32]
Call = Callable[[], torch.Tensor]


def operator(workload: str, inputs: list[Array], threads: int) -> tuple[Call, Callable[[torch.Tensor], Array]]:
    """Return a call that computes the workload, and a function that converts its result to the workload's layout."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    tensors = [torch.from_numpy(array) for array in inputs]
    family, _, index = workload.partition("-")
    if family == "MM":
        a, b = tensors
        return lambda: torch.mm(a, b), _same
    config = CONFIGS[family][1][0 if workload == "GMM-128" else int(index)]
    match family:
        case "GMM":
            x, y = tensors
            return lambda: torch.bmm(x, y), _same
        case "C1D":
            *_, stride, padding = config
            x, w = tensors[0].permute(0, 2, 1).contiguous(), tensors[1].permute(2, 1, 0).contiguous()
            return lambda: functional.conv1d(x, w, None, stride, padding), lambda out: out.permute(0, 2, 1).numpy()
        case "C2D" | "GRP":
            stride, padding = config[6], config[7]
            groups = config[9] if family == "GRP" else 1
            x, w = _channels_last(tensors[0].permute(0, 3, 1, 2)), _channels_last(tensors[1].permute(3, 2, 0, 1))
            return lambda: functional.conv2d(x, w, None, stride, padding, 1, groups), _nhwc
        case "DEP":
            *_, stride, padding = config
            channels = tensors[0].shape[3]
            x, w = _channels_last(tensors[0].permute(0, 3, 1, 2)), _channels_last(tensors[1].permute(3, 0, 1, 2))
            return lambda: functional.conv2d(x, w, None, stride, padding, 1, channels), _nhwc
        case "T2D":
            *_, stride, padding = config
            x = _channels_last(tensors[0].permute(0, 3, 1, 2))
            w = _channels_last(tensors[1].permute(2, 3, 0, 1))
            return lambda: functional.conv_transpose2d(x, w, None, stride, padding), _nhwc
        case "NRM":
            (a,) = tensors
            return lambda: torch.linalg.vector_norm(a, dim=(1, 2)), _same
        case "SFM":
            (a,) = tensors
            return lambda: torch.softmax(a, dim=1), _same
    raise ValueError(f"no operator of PyTorch is known for {workload}")


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous(memory_format=torch.channels_last)


def _same(out: torch.Tensor) -> Array:
    return out.numpy()


def _nhwc(out: torch.Tensor) -> Array:
    return out.permute(0, 2, 3, 1).numpy()
