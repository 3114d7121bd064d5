"""``scripts/demo``: the service, a real two-layer model, and its tuning, watched.

Exit status 0 only if every task has a certified best.
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.table import Table

from loopwright import Client, Job
from loopwright.results.tables import titled
from loopwright.results.units import ratio
from service.process.exit_status import explained, leave
from service.process.serve_error import ServeError
from service.process.supervisor import Supervisor
from service.settings import ensure_token, read_settings
from service.settings import parser as service_parser

TRIALS = 128

# A perceptron of the size that FashionMNIST takes, batch 1: 784 pixels, 128 hidden units, 10 classes. The weights are
# arguments: schedules do not depend on their values.
MODEL = """
@I.ir_module
class Perceptron:
    @R.function
    def main(
        x: R.Tensor((1, 784), "float32"),
        w0: R.Tensor((784, 128), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((128, 10), "float32"),
        b1: R.Tensor((10,), "float32"),
    ) -> R.Tensor((1, 10), "float32"):
        with R.dataflow():
            hidden = R.matmul(x, w0)
            shifted = R.add(hidden, b0)
            active = R.nn.relu(shifted)
            scores = R.matmul(active, w1)
            out = R.add(scores, b1)
            R.output(out)
        return out
"""


def parser() -> argparse.ArgumentParser:
    parser = service_parser("scripts/demo")
    parser.add_argument("--exit", action="store_true", help="exit after the table instead of serving until Ctrl-C")
    return parser


def main() -> None:
    options = vars(parser().parse_args())
    exit_after = options.pop("exit")
    settings = read_settings(options)
    console = Console()
    supervisor = Supervisor(settings, say=lambda text: console.print(text, soft_wrap=True, highlight=False))
    supervisor.handle_signals()
    try:
        with explained(settings), supervisor.running():
            console.print(f"Dashboard: {supervisor.login_url()}", soft_wrap=True, highlight=False)
            certified = tune(Client(supervisor.url, ensure_token(settings)), console)
            if not exit_after:
                console.print("Serving until Ctrl-C.")
                supervisor.wait()
    except ServeError as error:
        leave(error.status, str(error))
    sys.exit(0 if certified else 1)


def tune(client: Client, console: Console) -> bool:
    """Submit the model, watch its job and print the table. True if every task has a certified best."""
    job = client.submit(MODEL, target="auto", max_trials=TRIALS, name="two-layer perceptron")
    job.wait(progress=True, console=console)
    console.print()
    console.print(_table(job))
    if job.error:
        console.print(f"The job failed: {job.error}", style="red")
    return bool(job.tasks) and all(task.certified for task in job.tasks)


def _table(job: Job) -> Table:
    table = Table(title=f"{job.name}: {job.progress.trials} trials")
    for heading in ("task", "baseline", "best", "speedup", "certified"):
        table.add_column(heading, justify="left" if heading in ("task", "certified") else "right", no_wrap=True)
    for task in job.tasks:
        table.add_row(
            titled(task),
            _micros(task.baseline_us),
            _micros(task.best_us),
            ratio(task.speedup, task.interval),
            "certified" if task.certified else f"no: {task.error or job.state}",
        )
    return table


def _micros(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f} µs"


if __name__ == "__main__":
    main()
