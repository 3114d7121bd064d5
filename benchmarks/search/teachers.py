"""The experience of a warm search: a real tuning database, filled by tuning workloads that no arm is asked for.

Every family of the comparison has relatives here, at other shapes. It has no row of the workload that is tuned.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import tvm

from benchmarks.report import RAW
from benchmarks.search.workloads import WORKLOADS, product, suite
from benchmarks.services import embedded
from db import Database
from loopwright.codegen.versions import TVM_VERSION
from service.settings import Settings
from tuner.cost_model.features import from_bytes
from tuner.cost_model.model import Sample, train_base
from tuner.types import DeviceClass
from tuner.workload import make_workload

_FOLDER, _PORT = RAW / "teachers", 8095
DATABASE = Settings(data_dir=_FOLDER).database
TRIALS = 96

TEACHERS: dict[str, Callable[[], tvm.tirx.PrimFunc]] = {
    "MM-256": lambda: product(256, 256, 256),
    "MM-768": lambda: product(768, 768, 768),
    "MM-odd": lambda: product(383, 211, 97),
    **{f"{name}-{i}": suite(name, i) for name in ("GMM", "C1D", "C2D", "DEP", "GRP", "T2D") for i in (2, 3)},
    **{f"{name}-{i}": suite(name, i) for name in ("NRM", "SFM") for i in (0, 2)},
}


def teach() -> None:
    """Tune every teacher through the service, each cold; those that its database knows already are answered by it."""
    with embedded(_PORT, _FOLDER) as client:
        for name, make in TEACHERS.items():
            job = client.submit(make(), max_trials=TRIALS, name=name).wait(progress=False)
            print(f"teacher {name}: {job.state}", flush=True)


def experience(url: str, workload: str, device_class: DeviceClass) -> tuple[tuple[str, ...], bytes]:
    """Return traces of relatives and the base model for a workload of the comparison."""
    with closing(Database(url)) as database:
        here = make_workload(WORKLOADS[workload](), workload)
        database.workloads.put([here], TVM_VERSION)
        samples = [
            Sample(sample.workload_hash, from_bytes(sample.features), sample.median)
            for sample in database.cost_models.samples(device_class.id, TVM_VERSION)
        ]
        assert here.hash not in {sample.group for sample in samples}
        relatives = database.trials.relatives(here.hash, device_class.id)
    return tuple(relatives), train_base(samples, seed=0)
