"""The script that makes the starter pack, with a small layer."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from loopwright import Client
from loopwright.packs.archive import read
from loopwright.packs.signing import new_key
from scripts.make_starter_pack import Layer, build, layers


def test_layers_are_tuned_and_packed(client: Client, tmp_path: Path) -> None:
    key = tmp_path / "team.key"
    new_key(key)

    def make() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(104, 56), torch.nn.ReLU()).eval(), (torch.zeros(3, 104),)

    made = build(client, tmp_path / "starter.pack", key, [Layer("a layer", make)], trials=4)
    assert made.functions == 1
    assert {each.best.certificate.speedup >= 1 for each in read(tmp_path / "starter.pack").bests} == {True}
    [job] = itertools.islice(client.jobs(name="starter: a layer"), 2)
    assert job.info.priority < 0


def test_the_layers_have_names_of_their_own() -> None:
    names = [layer.name for layer in layers()]
    assert len(set(names)) == len(names) == 25


@pytest.mark.whole
@pytest.mark.parametrize("name", ["resnet basic", "bert 384 x 16", "vit 192"])
def test_a_layer_of_each_kind_can_be_lowered(client: Client, name: str) -> None:
    [layer] = [each for each in layers() if each.name == name]
    module, inputs = layer.make()
    assert client.look_up(module, example_inputs=inputs).module.functions
