"""One service that many tests share, the jobs that they read, and the order in which tests run."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import itertools
import os
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.support import draws, gaps, module_seconds, unchanged
from tests.support.golden import Golden
from tests.support.played_service import PlayedService, played
from tests.support.programs import MM_RELU
from tests.support.service import PLACES, Service
from tests.support.service_client import ServiceClient

REAL = re.compile(r"tests/acceptance/|real_service\.py|[\[-]real[\]-]")
"""Tests that share `real_service`, but for `OWN_SERVICES`. They run in one process, so that it starts once."""
PLAYED = ("tests/browser/", "tests/examples/", "tests/integration/sdk/")
"""Where the tests of a folder share what they compile and the jobs that they read."""
OWN_SERVICES = (
    "tests/acceptance/test_acceptance_boards.py",
    "tests/acceptance/test_acceptance_emulated_board.py",
    "tests/acceptance/test_acceptance_chaos.py",
    "tests/acceptance/test_acceptance_chaos_matrix.py",
    "tests/browser/test_browser_best_schedules.py",
)
SPREAD = "tests/semantics/test_semantics_torch_sweep.py"
"""Its tests share nothing and take an hour together: each process takes the next one."""

# A test says what is right, not how fast: the process may wait while others have the cores.
hypothesis.settings.register_profile("without a deadline", deadline=None)
hypothesis.settings.load_profile("without a deadline")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order-seed", type=int, metavar="N", help="shuffle modules, and tests within modules; N repeats")
    parser.addoption("--renew-golden", action="store_true", help="write the files of tests/golden anew")
    parser.addoption("--seconds-table", type=Path, metavar="FILE", help="write the seconds by module to a file, too")


def pytest_configure(config: pytest.Config) -> None:
    """Give libraries one thread, before tests import them: as many processes run tests as there are cores."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    config.pluginmanager.register(unchanged.Unchanged(config))


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("order_seed")
    return None if seed is None else f"order: --order-seed {seed}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle modules, and tests within modules. Those of one group come first: a process takes a group as a whole."""
    seed = config.getoption("order_seed")
    if seed is None:
        return
    draw = random.Random(seed)
    modules = [list(tests) for _, tests in itertools.groupby(items, lambda item: item.path)]
    draw.shuffle(modules)
    modules.sort(key=lambda tests: _place(group(tests[0].nodeid)))
    for tests in modules:
        draw.shuffle(tests)
    items[:] = itertools.chain.from_iterable(modules)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Spare the garbage collector what was imported: it would go through all of PyTorch and TVM again and again.

    TVM's own handler of segmentation faults, set when it is imported, takes the place of the one that prints where the
    tests were, and what it prints itself is captured: the handler is set once more, in a process of xdist to a file.
    """
    gc.freeze()
    faulthandler.disable()
    if not hasattr(session.config, "workerinput"):
        faulthandler.enable(session.config.stash[fault_handler_stderr_fd_key])
        return
    file = _last_words(session.config.workerinput["testrunuid"], session.config.workerinput["workerid"]).open("w")
    session.config.add_cleanup(file.close)
    faulthandler.enable(file)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    draws.start(item.name)


def _last_words(run: str, process: str) -> Path:
    return Path(tempfile.gettempdir()) / f"loopwright-tests-{run}-{process}.txt"


_ended: list[str] = []
"""How processes of xdist ended, where they should not have, and where they were then."""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController, error: object) -> None:
    path = _last_words(node.workerinput["testrunuid"], node.workerinput["workerid"])
    words = path.read_text() if path.exists() else ""
    path.unlink(missing_ok=True)
    if error:
        with contextlib.suppress(subprocess.TimeoutExpired):
            node.gateway._io.popen.wait(10)
        _ended.append(f"{node.gateway.id} ended with status {node.gateway._io.popen.returncode}\n{words}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what tests recorded; say last how processes ended: a log that is cut off keeps its end."""
    reports = [
        report
        for found in terminalreporter.stats.values()
        for report in found
        if isinstance(report, pytest.TestReport) and report.when in ("setup", "call", "teardown")
    ]
    seconds = module_seconds.table(reports)
    if reports:
        terminalreporter.section("seconds by module")
        terminalreporter.write_line("\n".join(seconds))
    if not hasattr(config, "workerinput") and (file := config.getoption("seconds_table")) is not None:
        file.write_text("\n".join([*seconds, ""]))
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    properties = [each for report in reports if report.when == "call" for each in report.user_properties]
    if lines := gaps.table(properties):
        terminalreporter.section("longest time without a finished trial")
        terminalreporter.write_line("\n".join(lines))
    for text in _ended:
        terminalreporter.section("a process of the tests ended", red=True)
        terminalreporter.write_line(text)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return Groups(config, log)


class Groups(LoadScopeScheduling):
    """Gives a process whole groups of tests."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Give what a process that ended has left to do to others.

        xdist would give them its finished groups, too. One that was given nothing else would wait for ever.
        """
        groups = self.assigned_work[node]
        self.assigned_work[node] = {name: tests for name, tests in groups.items() if not all(tests.values())}
        return super().remove_node(node)

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def group(nodeid: str) -> str:
    """Return "service", or "cluster" where tests share a Ray cluster, or a folder, a module or a test of its own."""
    path = nodeid.split("::")[0]
    if path == SPREAD:
        return nodeid
    if path in OWN_SERVICES:
        return path
    if REAL.search(nodeid):
        return "service"
    if path.startswith("tests/integration/test_"):
        return "cluster"
    return next((folder for folder in PLAYED if path.startswith(folder)), path)


def _place(name: str) -> int:
    """Return 0 for the group that takes longest, 1 for others of several modules, and 2 for modules and tests."""
    return 0 if name == "service" else 1 if name == "cluster" or name in PLAYED else 2


@pytest.fixture(scope="session")
def golden(pytestconfig: pytest.Config) -> Golden:
    return Golden(renews=pytestconfig.getoption("renew_golden"))


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedService]:
    """A service on SQLite whose fleet is played. It lets guests in."""
    with played(tmp_path_factory.mktemp("played")) as service:
        yield service


@pytest.fixture(scope="session")
def real_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service on SQLite, with a Ray of its own, that lets guests in. A test that stops it starts it again."""
    service = Service(tmp_path_factory.mktemp("service"))
    service.environment |= {"LOOPWRIGHT_GUESTS": "true", "LOOPWRIGHT_MAX_JOBS": str(PLACES)}
    with service:
        yield service


@pytest.fixture(scope="session", autouse=True)
def _one_sandbox() -> Iterator[None]:
    """Give each API in this process one child that imports TVM, not two: a child costs seconds of processor time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.app._SANDBOXES", 1)
        yield


@pytest.fixture(autouse=True)
def no_job_outlives_its_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests share the database of `service`: a job that goes on would change a best while the next test compares it.

    Such a job is cancelled, so that it fails this test only.
    """
    names = {"service", "real_service"} & set(request.fixturenames)
    values = [request.getfixturevalue(name) for name in names]
    yield
    # Some folders have another fixture of this name.
    for service in filter(lambda value: isinstance(value, ServiceClient), values):
        left = service.items("/jobs", state=["queued", "running"])
        for job in left:
            service.http.post(f"/api/v1/jobs/{job['id']}/cancel")
            service.finished(job["id"])
        assert left == []


@pytest.fixture(scope="session")
def finished_job(service: PlayedService) -> dict[str, Any]:
    """A succeeded job of `MM_RELU`, one function, with enough trials for the surrogate model to have predicted some.

    No other test tunes this workload, so that its best is this job's.
    """
    return service.tuned(MM_RELU, trials=24, name="product")


@pytest.fixture(scope="session")
def finished_model(service: PlayedService) -> dict[str, Any]:
    """A succeeded job of `PERCEPTRON`, two functions. No other test tunes these workloads."""
    from tests.support.perceptron import PERCEPTRON

    return service.tuned(PERCEPTRON, trials=16, name="perceptron")
