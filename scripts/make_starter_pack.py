"""Tune common layers on a service, in idle time, and write their bests to a pack: what a new deployment installs first.

The layers are those of BERT, ViT and ResNet of ``transformers`` at the sizes in which models are published. Each is a
job with a low priority. If this is interrupted and begun again, what is known by then is answered from the database.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import BertConfig, BertModel, ResNetConfig, ResNetModel, ViTConfig, ViTModel

from loopwright import Client, Job
from loopwright.packs.manifest import PackManifest

PRIORITY = -50
"""Below that of users' jobs."""
HEAD = 64
"""Channels of an attention head, in all of these models."""


class Layer(NamedTuple):
    """A module to tune, made when it is its turn."""

    name: str
    make: Callable[[], tuple[torch.nn.Module, tuple[Any, ...]]]


def layers() -> Iterator[Layer]:
    """Yield the layers of the starter pack, the most common first."""
    for depths, kind, widths in (
        ((2, 2, 2, 2), "basic", (64, 128, 256, 512)),
        ((1, 1, 1, 1), "bottleneck", (256, 512, 1024, 2048)),
    ):
        yield Layer(f"resnet {kind}", partial(_resnet, depths, kind, widths))
    for width in (768, 384, 512, 1024):
        for length in (128, 16, 64, 256, 512):
            yield Layer(f"bert {width} x {length}", partial(_bert, width, length))
    for width in (768, 384, 192):
        yield Layer(f"vit {width}", partial(_vit, width))


def _bert(width: int, length: int) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    config = BertConfig(
        hidden_size=width, num_attention_heads=width // HEAD, num_hidden_layers=1, intermediate_size=4 * width
    )
    return _ready(BertModel(config)), (torch.zeros(1, length, dtype=torch.int64),)


def _vit(width: int) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    config = ViTConfig(
        hidden_size=width, num_attention_heads=width // HEAD, num_hidden_layers=1, intermediate_size=4 * width
    )
    return _ready(ViTModel(config)), (torch.zeros(1, 3, 224, 224),)


def _resnet(depths: Sequence[int], kind: str, widths: Sequence[int]) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    config = ResNetConfig(depths=list(depths), layer_type=kind, hidden_sizes=list(widths))
    return _ready(ResNetModel(config)), (torch.zeros(1, 3, 224, 224),)


def _ready(module: Any) -> torch.nn.Module:
    evaluated: torch.nn.Module = module.eval()
    return evaluated


def build(client: Client, path: Path, key: Path, chosen: Sequence[Layer], trials: int) -> PackManifest:
    """Tune layers with so many trials a function, one after another, and write the pack of their bests.

    Raise ValueError if a job did not succeed.
    """
    jobs = [_tuned(client, layer, trials) for layer in chosen]
    return client.export_pack(path, key=key, creator="the Loopwright project", licence="Apache-2.0", jobs=jobs)


def _tuned(client: Client, layer: Layer, trials: int) -> Job:
    module, inputs = layer.make()
    options: dict[str, Any] = {"example_inputs": inputs, "priority": PRIORITY, "name": f"starter: {layer.name}"}
    functions = len(client.look_up(module, example_inputs=inputs).module.get_global_vars())
    job: Job = client.submit(module, max_trials=trials * functions, **options).wait()
    if job.state != "succeeded":
        raise ValueError(f"the job {job.id} of {layer.name} {job.state}: {job.error or 'not all of its functions'}")
    return job


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("pack", type=Path, help="file to write")
    options.add_argument("--key", type=Path, required=True, help="private key that signs it (loopwright key new)")
    options.add_argument("--trials", type=int, default=64, help="trials for each function (default: 64)")
    return options


def main() -> None:
    chosen = parser().parse_args()
    with Client() as client:
        made = build(client, chosen.pack, chosen.key, list(layers()), chosen.trials)
    print(f"{made.bests} bests of {made.functions} functions, {chosen.pack.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
