"""Tune common layers on a service, in idle time, and write their bests to a pack: what a new deployment installs first.

The layers are those of ResNet, BERT, ViT and MobileNet of ``transformers`` at the sizes in which models are published.
Each is a job with a low priority. If this is interrupted and begun again, what is known by then is answered from the
database. With ``--share-of-resnet18``, a pack is installed instead, and it is said how much of a model it answers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import (
    BertConfig,
    BertModel,
    MobileNetV2Config,
    MobileNetV2ForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
    ViTConfig,
    ViTModel,
)

from examples.resnet18 import ResNet18
from loopwright import Client, Job
from loopwright.packs.archive import read
from loopwright.packs.manifest import PackManifest

PRIORITY = -50
"""Below that of users' jobs."""
HEAD = 64
"""Channels of an attention head, in all of these models."""
IMAGENET: dict[str, Any] = {"num_labels": 1000}
IMPORTED_TRIALS = 8
"""Of a function whose imported schedules are tried: as many as a search takes."""


class Layer(NamedTuple):
    """A module to tune, made when it is its turn."""

    name: str
    make: Callable[[], tuple[torch.nn.Module, tuple[Any, ...]]]


def layers() -> Iterator[Layer]:
    """Yield the layers of the starter pack, the most common first."""
    yield Layer("resnet basic", partial(_resnet, "basic", (64, 128, 256, 512)))
    yield Layer("bert 768 x 128", partial(_bert, 768, 128))
    yield Layer("vit 768", partial(_vit, 768))
    yield Layer("resnet bottleneck", partial(_resnet, "bottleneck", (256, 512, 1024, 2048)))
    yield Layer("mobilenet", _mobilenet)
    for width in (768, 384, 512, 1024):
        for length in (128, 16, 64, 256, 512):
            if (width, length) != (768, 128):
                yield Layer(f"bert {width} x {length}", partial(_bert, width, length))
    for width in (384, 192):
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


def _resnet(kind: str, widths: Sequence[int]) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    # Two blocks of each width: one that changes the size, and one that does not.
    config = ResNetConfig(depths=[2, 2, 2, 2], layer_type=kind, hidden_sizes=list(widths), **IMAGENET)
    return _ready(ResNetForImageClassification(config)), (torch.zeros(1, 3, 224, 224),)


def _mobilenet() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    config = MobileNetV2Config(tf_padding=False, **IMAGENET)
    return _ready(MobileNetV2ForImageClassification(config)), (torch.zeros(1, 3, 224, 224),)


def _ready(module: Any) -> torch.nn.Module:
    evaluated: torch.nn.Module = module.eval()
    return evaluated


def build(
    client: Client, path: Path, key: Path, chosen: Sequence[Layer], *, trials: int, minutes: float | None = None
) -> PackManifest:
    """Tune layers one after another, and write the pack of their certified bests.

    Args:
        client: of the service that tunes.
        path: the pack to write.
        key: the file of the private key that signs it.
        chosen: the layers.
        trials: for each function.
        minutes: the time for all layers. Those that it does not reach are left out.

    Raises:
        ValueError: a job failed, or nothing was certified in that time.
    """
    until = None if minutes is None else time.monotonic() + 60 * minutes
    jobs: list[Job] = []
    for layer in chosen:
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            break
        jobs.append(_tuned(client, layer, trials, left))
    return client.export_pack(path, key=key, creator="the Loopwright project", licence="Apache-2.0", jobs=jobs)


def _tuned(client: Client, layer: Layer, trials: int, seconds: float | None) -> Job:
    module, inputs = layer.make()
    options: dict[str, Any] = {"example_inputs": inputs, "priority": PRIORITY, "name": f"starter: {layer.name}"}
    if seconds is not None:
        options["max_seconds"] = max(1.0, seconds)
    return _finished(client, module, trials, **options)


def _finished(client: Client, module: torch.nn.Module, trials: int, *, example_inputs: Any, **options: Any) -> Job:
    """Submit a module with so many trials for each of its functions, and return the job once it ended."""
    functions = len(client.look_up(module, example_inputs=example_inputs).module.get_global_vars())
    job: Job = client.submit(module, example_inputs=example_inputs, max_trials=trials * functions, **options).wait()
    # If the time ended before all functions were certified, those that were are worth having.
    if job.state not in ("succeeded", "partly"):
        raise ValueError(f"the job {job.id} {job.state}: {job.error}")
    return job


class Share(NamedTuple):
    """How much of a model's time a pack answers, each as a fraction of one run."""

    untuned: float
    """Of the unscheduled functions' time, that of functions which the pack has."""
    certified: float
    """The same of their certified time."""
    kept: float
    """Of the certified time, that of functions whose best is the pack's after a race on this service's machines."""


def share(client: Client, path: Path, keys: Path, module: torch.nn.Module, inputs: tuple[Any, ...]) -> Share:
    """Install a pack, certify a model's functions with few trials, and return how much of its time the pack answers."""
    client.install_pack(path, keys)
    shipped = {each.best.workload_hash: each.best.trace for each in read(path).bests}
    job = _finished(client, module, IMPORTED_TRIALS, example_inputs=inputs, name="a model beside a pack")
    has = {task.workload_hash for task in job.tasks} & shipped.keys()
    keeps = {each.workload_hash for each in client.bests() if each.trace == shipped.get(each.workload_hash)} & has

    untuned = {task.workload_hash: task.weight * (task.baseline_us or 0.0) for task in job.tasks}
    certified = {task.workload_hash: task.weight * (task.best_us or 0.0) for task in job.tasks}
    return Share(_part(has, untuned), _part(has, certified), _part(keeps, certified))


def _part(of: set[str], times: dict[str, float]) -> float:
    return sum(times[each] for each in of) / sum(times.values())


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("pack", type=Path, help="file to write")
    what = options.add_mutually_exclusive_group(required=True)
    what.add_argument("--key", type=Path, help="private key that signs it (loopwright key new)")
    what.add_argument(
        "--share-of-resnet18", type=Path, metavar="KEYS", help="install the pack, verified with these public keys"
    )
    options.add_argument("--trials", type=int, default=64, help="trials for each function (default: 64)")
    options.add_argument("--minutes", type=float, help="time for all layers (default: until all are tuned)")
    options.add_argument("--layers", default="", help="only layers whose names contain this text")
    return options


def main() -> None:
    options = parser().parse_args()
    with Client() as client:
        if options.share_of_resnet18 is not None:
            model, inputs = _ready(ResNet18()), (torch.zeros(1, 3, 224, 224),)
            found = share(client, options.pack, options.share_of_resnet18, model, inputs)
            print(f"of a ResNet-18 at 224, the pack answers {found.untuned:.0%} of the untuned time, and")
            print(f"{found.certified:.0%} of the certified time; {found.kept:.0%} with the pack's own schedules")
            return
        chosen = [layer for layer in layers() if options.layers in layer.name]
        made = build(client, options.pack, options.key, chosen, trials=options.trials, minutes=options.minutes)
    print(f"{made.bests} bests of {made.functions} functions, {options.pack.stat().st_size / 2**20:.1f} MiB")
    for machine in made.machines:
        print(f"certified on {machine.model}, {machine.cores} cores, {machine.threads} threads: {machine.target}")


if __name__ == "__main__":
    main()
