"""The script that makes the starter pack, with a small layer."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from loopwright import Client
from loopwright.packs.archive import read
from loopwright.packs.signing import new_key
from scripts.make_starter_pack import Layer, build, layers, share


def test_layers_are_tuned_and_packed(client: Client, tmp_path: Path) -> None:
    path, key, keys = (tmp_path / name for name in ("starter.pack", "team.key", "keys.json"))
    keys.write_text(f"[{new_key(key).public.model_dump_json()}]")

    def make() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(104, 56), torch.nn.ReLU()).eval(), (torch.zeros(3, 104),)

    chosen = [Layer("a layer", make)]
    with pytest.raises(ValueError, match="no certified best"):
        build(client, path, key, chosen, trials=4, minutes=0)
    made = build(client, path, key, chosen, trials=4, minutes=60)
    assert made.functions == 1
    assert {each.best.certificate.speedup >= 1 for each in read(path).bests} == {True}
    [job] = itertools.islice(client.jobs(name="starter: a layer"), 2)
    assert job.info.priority < 0

    # Of a model with this layer and another one, the pack answers a part.
    layer, inputs = make()
    found = share(client, path, keys, torch.nn.Sequential(layer, torch.nn.Linear(56, 48)).eval(), inputs)
    assert 0 < found.untuned < 1
    assert 0 < found.kept == found.certified < 1


def test_the_layers_have_names_of_their_own() -> None:
    names = [layer.name for layer in layers()]
    assert len(set(names)) == len(names) == 26


@pytest.mark.whole
@pytest.mark.parametrize("name", ["resnet basic", "bert 384 x 16", "vit 192", "mobilenet"])
def test_a_layer_of_each_kind_can_be_lowered(client: Client, name: str) -> None:
    [layer] = [each for each in layers() if each.name == name]
    module, inputs = layer.make()
    assert client.look_up(module, example_inputs=inputs).module.functions
