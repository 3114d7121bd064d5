"""Recurrent layers and cells of PyTorch: all kinds, layers, directions and dtypes, and loops over cells."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from loopwright import frontends
from loopwright.codegen.functions import used_prim_funcs
from loopwright.codegen.program.lowering import lower
from loopwright.model import Model
from tests.support.models import Calls
from tests.support.rule_programs import TARGET
from tests.support.torch_models import assert_same, compiled


def agree(model: nn.Module, *inputs: Tensor) -> None:
    """Compare values with PyTorch's in float64, and dtypes and shapes with PyTorch's own."""
    program = compiled(model, inputs)
    with torch.no_grad():
        results = torch.utils._pytree.tree_leaves(model(*inputs))
        exact = torch.utils._pytree.tree_leaves(model.double()(*(each.double() for each in inputs)))
    for got, own, expected in zip(program(*inputs), results, exact, strict=True):
        bound = 2e-3 if own.dtype == torch.float16 else 1e-5
        assert_same(got, expected.to(own.dtype), rtol=bound, atol=bound)


def test_layers_agree() -> None:
    torch.manual_seed(0)
    layers: dict[str, nn.Module] = {
        "both": nn.LSTM(7, 19, num_layers=2, bidirectional=True),
        "few": nn.GRU(7, 3, bias=False, bidirectional=True, batch_first=True),
        "panels": nn.GRU(7, 32, num_layers=2),
        "relu": nn.RNN(7, 5, nonlinearity="relu", batch_first=True),
        "projected": nn.LSTM(7, 6, proj_size=3),
    }

    def all_layers(x: Any, h: Any, c: Any, **layers: nn.Module) -> Any:
        started = layers["both"](x, (h, c))
        return started, [layers[name](x) for name in ("few", "panels", "relu", "projected")]

    agree(Calls(all_layers, **layers), torch.randn(4, 6, 7), torch.randn(4, 6, 19), torch.randn(4, 6, 19))


def test_layers_of_halves_are_summed_in_float32() -> None:
    torch.manual_seed(0)
    agree(nn.GRU(8, 20).half(), torch.randn(5, 1, 8).half())


def test_loops_over_cells_are_layers_if_no_step_needs_another() -> None:
    torch.manual_seed(0)

    def steps(x: Any, *, first: nn.LSTMCell, second: nn.GRUCell) -> Any:
        states, h, outputs = None, x.new_zeros(x.shape[0], 11), []
        for place in range(x.shape[1]):
            states = first(x[:, place], states)
            h = second(states[0], h)
            outputs.append(h)
        return torch.stack(outputs, 1), states

    model = Calls(steps, first=nn.LSTMCell(6, 18), second=nn.GRUCell(18, 11))
    program = frontends.to_program(Model(model, example_inputs=(torch.randn(3, 5, 6),)))
    names = [str(var.name_hint) for var, _ in used_prim_funcs(lower(program.module, TARGET))]
    assert names == ["fused_matmul1_add1", "fused_matmul_add", "gru_steps", "lstm_steps"]

    def dependent(x: Any, *, own: nn.GRUCell, seen: nn.LSTMCell) -> Any:
        h, states, memories = x[0], None, []
        for row in x:
            h, states = own(row + h, h), seen(row, states)
            memories.append(states[1])
        return h, torch.cat(memories)

    loops = {"own": nn.GRUCell(6, 6), "seen": nn.LSTMCell(6, 5)}
    both = Calls(
        lambda x, **cells: (
            steps(x, first=cells["first"], second=cells["second"]),
            dependent(x, own=cells["own"], seen=cells["seen"]),
        ),
        first=model.first,
        second=model.second,
        **loops,
    )
    agree(both, torch.randn(3, 5, 6))
