"""The Python and the commands of the guides run as they stand there, with few trials and a small model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import tvm
from torch import nn
from tvm import relax

import loopwright
import loopwright.torch
from loopwright import Client, Job
from loopwright.frontends.tvmscript import module_from_script
from loopwright.packs.signing import read_key
from tests.support.certificates import claim
from tests.support.programs import product_relu
from tests.support.sdk import tuned
from tests.support.service_client import ServiceClient
from tests.support.snippets import GUIDES, Reader, Replacements, blocks

TRIALS = 8
PRODUCT = product_relu(244)
SLOW = ("ci", "comparing", "packaging", "rechecks", "records", "shapes", "spaces", "torch-compile")
RUN = [path for path in GUIDES if any(block.runs for block in blocks(path))]
INPUT = (torch.linspace(-1, 1, 4 * 72).reshape(4, 72),)


@pytest.fixture(scope="module")
def client(service: ServiceClient) -> Iterator[Client]:
    with Client(service.url, service.token) as connected:
        yield connected
        for webhook in connected.webhooks.list():
            connected.webhooks.delete(webhook.id)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(72, 40), nn.ReLU()).eval()


@pytest.fixture(scope="module")
def job(service: ServiceClient, client: Client, model: nn.Module) -> Job:
    """That of the model, so that guides find it tuned.

    Its certificate claims little: it holds however disturbed the machine is when the guide on rechecks races it again.
    """
    job = tuned(client.submit(model, example_inputs=INPUT, max_trials=TRIALS))
    claim(service, job.tasks[0].workload_hash, 8)
    return job


@pytest.fixture(scope="module")
def files(client: Client, job: Job, model: nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that guides read."""
    folder = tmp_path_factory.mktemp("files")
    torch.export.save(torch.export.export(model, INPUT), folder / "model.pt2")
    for name in ("model.py", "mm_relu.py"):
        (folder / name).write_text(f"from tvm.script import ir as I\nfrom tvm.script import tirx as T\n\n{PRODUCT}")
    client.export_records(folder / "work_dir")
    return folder


@pytest.fixture(scope="module")
def replacements(service: ServiceClient, client: Client, job: Job) -> dict[str, Replacements]:
    """What takes the place of words in the commands of a guide."""
    return {
        "comparing": {"torch,compile,ort,openvino": "torch,ort --processes 1 --rounds 1"},
        "packs": {"ID": lambda: read_key(Path("team.key")).public.id},
        "targets": {"--wait": f"--max-trials {TRIALS} --wait", "GROUP": lambda: str(next(client.jobs()).info.group)},
        "rechecks": {"0f2a4c6e8b1d3f507192a3b4c5d6e7f8": job.tasks[0].workload_hash},
        "users": {"http://HOST:8080": service.url, "ID": lambda: next(client.access.tokens()).id},
        # Where nobody listens.
        "webhooks": {"https://example.org": "http://127.0.0.1:9", "ID": lambda: next(client.webhooks.list()).id},
    }


@pytest.mark.usefixtures("_as_a_reader")
@pytest.mark.parametrize(
    "document",
    [pytest.param(path, id=path.stem, marks=pytest.mark.whole if path.stem in SLOW else ()) for path in RUN],
)
def test_a_guide_does_what_it_says(
    document: Path,
    service: ServiceClient,
    client: Client,
    model: nn.Module,
    job: Job,
    files: Path,
    replacements: dict[str, Replacements],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr("getpass.getpass", lambda _: service.token)
    names: dict[str, Any] = {
        **{"loopwright": loopwright, "torch": torch, "tvm": tvm, "relax": relax},
        **{"client": client, "model": model, "inputs": INPUT, "x": INPUT[0], "job": job},
        "mod": module_from_script(PRODUCT),
        "best": client.best(job.tasks[0].workload_hash),
    }
    Reader(tmp_path, names, trials=TRIALS, replacements=replacements.get(document.stem)).read(document)
