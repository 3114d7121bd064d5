"""The SDK in a real notebook kernel."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from tests.support.programs import product_relu
from tests.support.service_client import JOB_SECONDS, ServiceClient

WAIT = """import loopwright
client = loopwright.Client(URL, TOKEN)
job = client.submit(PROGRAM, max_trials=4, name="<drawn> in a notebook", force=True)
job.wait(progress=True)
records = client.records(job.info.tasks[0].workload_hash);"""
HELD = {
    "job": "main",
    "client.bests()": "llvm",  # of all workloads of the service: which come first is not known here
    "client.best(PROGRAM)": "main",
    "client.best(PROGRAM).to_pandas()": "main",
    "records": "main",
    "records.to_pandas()": "main",
    "job.to_pandas()": "main",
}
"""What is held by a notebook, and what its table must say."""


@pytest.fixture(scope="module")
def notebook(service: ServiceClient) -> NotebookNode:
    values = f"URL, TOKEN, PROGRAM = {service.url!r}, {service.token!r}, {product_relu(44)!r}"
    notebook = new_notebook(cells=[new_code_cell(code) for code in (values, WAIT, *HELD)])
    NotebookClient(notebook, timeout=JOB_SECONDS, kernel_name="python3").execute()
    nbformat.validate(notebook)
    return notebook


def html(notebook: NotebookNode, code: str) -> str:
    [cell] = [cell for cell in notebook.cells if cell.source == code]
    assert [output.output_type for output in cell.outputs if output.output_type == "error"] == []
    return "".join(output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {}))


def test_waiting_draws_one_table_that_ends_with_the_result(notebook: NotebookNode) -> None:
    drawn = html(notebook, WAIT)
    assert drawn.count("<table>") == 1
    assert "&lt;drawn&gt; in a notebook: succeeded, 4 of 4 trials" in drawn
    assert "certified" in drawn


@pytest.mark.whole
@pytest.mark.parametrize(("code", "words"), HELD.items())
def test_what_is_held_is_shown_as_a_table(notebook: NotebookNode, code: str, words: str) -> None:
    shown = html(notebook, code)
    assert "<table" in shown
    assert words in shown
