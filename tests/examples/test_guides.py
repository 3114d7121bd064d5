"""The Python of the guides, on a running service: it runs as it stands there, with few trials and a small model."""

from __future__ import annotations

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
from tests.support.programs import product_relu
from tests.support.sdk import tuned
from tests.support.service import ROOT, Service
from tests.support.snippets import Reader, blocks

TRIALS = 8
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
RUN = [path for path in GUIDES if any(block.language == "python" and block.runs for block in blocks(path))]
INPUT = (torch.linspace(-1, 1, 4 * 72).reshape(4, 72),)


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.token) as connected:
        yield connected


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(72, 40), nn.ReLU()).eval()


@pytest.fixture(scope="module")
def job(client: Client, model: nn.Module) -> Job:
    """That of the model, so that guides find it tuned."""
    return tuned(client.submit(model, example_inputs=INPUT, max_trials=TRIALS))


@pytest.fixture(scope="module")
def records(client: Client, job: Job, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the guide on records imports."""
    return client.export_records(tmp_path_factory.mktemp("records"))


@pytest.mark.usefixtures("_as_a_reader")
@pytest.mark.parametrize("document", RUN, ids=lambda path: path.stem)
def test_a_guide_does_what_it_says(
    document: Path,
    client: Client,
    model: nn.Module,
    job: Job,
    records: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "work_dir").symlink_to(records)
    # Where the guide on packages says that `load.py` lies. Python does not look again into a folder that was not there.
    (tmp_path / "out").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "out"))
    names: dict[str, Any] = {
        **{"loopwright": loopwright, "torch": torch, "tvm": tvm, "relax": relax},
        **{"client": client, "model": model, "inputs": INPUT, "x": INPUT[0], "job": job},
        "mod": module_from_script(product_relu(244)),
        "best": client.best(job.tasks[0].workload_hash),
    }
    Reader(tmp_path, names, trials=TRIALS).read(document, ("python",))
