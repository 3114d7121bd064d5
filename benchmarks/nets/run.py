"""Tunes each net in a job of limited time, and measures it in a user's process, beside other engines and the fleet.

An interrupted run continues with the nets that have no result yet.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.nets.fleet import clocks
from benchmarks.nets.nets import NETS
from benchmarks.nets.timing import starts, timed
from benchmarks.quality.engines import OURS
from benchmarks.quality.service import Service, service_of
from benchmarks.quality.tuning import outcome
from benchmarks.runner import Raw, conditions
from benchmarks.services import embedded, scratch
from loopwright import Model
from loopwright.comparing import writing
from loopwright.comparing.files import Files
from service.settings import Settings as ServiceSettings

SMOKE = ("--only", "keyword-spotting", "--seconds", "20", "--rounds", "2")
_MOST_TRIALS = 8192
"""More than the seconds allow."""
_USUAL = (OURS, "PyTorch", "ONNX Runtime", "OpenVINO")
_SLOW = "torch.compile"
"""Its settings take minutes to compile."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=NETS, default=list(NETS), metavar="NET", help="these nets alone")
    parser.add_argument("--seconds", type=float, default=180.0, help="max_seconds of each job (default 180)")
    parser.add_argument(
        "--rounds", type=int, default=6, help="samples of each process, idle and under load (default 6)"
    )
    parser.add_argument("--inductor", action="store_true", help=f"time {_SLOW}, too, which takes minutes to compile")
    parser.add_argument("--again", action="store_true", help="repeat nets that have a result")
    parser.add_argument("--port", type=int, default=8099, help="of the service (default 8099)")


def run(options: argparse.Namespace, raw: Raw) -> str | None:
    # The service must be ended, whatever ends the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    known = {} if options.again else raw.latest("net")
    failed = []
    # A database and a cache of this run's own: it knows nothing of the nets.
    with scratch() as folder, embedded(options.port, folder / "service") as client:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        service = service_of(client.url, folder / "service")
        database_url = ServiceSettings(data_dir=folder / "service").database
        for name in options.only:
            if (name,) in known:
                continue
            try:
                raw.append(measured(name, options, folder / name, service, database_url))
            except Exception:
                traceback.print_exc()
                failed.append(name)
    return f"without a result: {', '.join(failed)}" if failed else None


def measured(
    name: str, options: argparse.Namespace, folder: Path, service: Service, database_url: str
) -> dict[str, Any]:
    """Return the line of a net."""
    noted, net = conditions(), NETS[name]
    threads = noted["threads"]
    folder.mkdir()
    files, _ = writing.write(folder, Model(net.model(), example_inputs=net.inputs()), "auto", with_onnx=True)
    line = {"net": name, "precision": files.precision, "tolerance": files.tolerance, "conditions": noted}
    began = time.monotonic()
    job = tuned(name, files, options.seconds, service)
    line["tuned"] = job
    _tell(name, "tuned", began)
    names = [*_USUAL, _SLOW] if options.inductor else _USUAL
    with clocks(database_url, job["job"], threads) as fleet:
        line |= timed(files, names, options.rounds, threads, service, fleet)
    _tell(name, "timed", began)
    line["starts"] = starts(files, threads, service)
    _tell(name, "started anew", began)
    return line


def tuned(name: str, files: Files, seconds: float, service: Service) -> dict[str, Any]:
    """Tune a net, and return the seconds from the job's submission to its end, and what the service says of the model.

    Functions that a job with little time leaves without a result are compiled untuned, as a user would.
    """
    with service.client() as client:
        job = client.submit(files.model, max_trials=_MOST_TRIALS, max_seconds=seconds, name=name)
        started = time.monotonic()
        job.wait(progress=False)
        took, model = time.monotonic() - started, job.model
        if job.error:
            print(f"{name}: {job.error}", flush=True)
        return outcome(job) | {
            "job": job.id,
            "max_seconds": seconds,
            "seconds": took,
            "state": job.state,
            "measured_us": model and model.measured_us,
            "sum_us": model and model.best_us,
        }


def _tell(name: str, what: str, began: float) -> None:
    print(f"{name}: {what} after {time.monotonic() - began:.0f} s", flush=True)
