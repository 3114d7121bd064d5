"""Tutorials have no blocks but those that tests run, compare or parse; other pages mark what no test runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.snippets import DOCS, RUN, TUTORIALS, Block, assert_prints, blocks, with_fewer_trials
from tests.unit.docs.documents import DOCUMENTS, ROOT

PAGES = [
    ROOT / "README.md",
    # The reference is written by the code that it describes.
    *(page for page in DOCUMENTS if page.is_relative_to(DOCS) and "<!-- end of reference -->" not in page.read_text()),
    DOCS / "reference" / "client.md",
]
DATA = ("json", "mermaid", "toml", "yaml")


@pytest.mark.parametrize("document", TUTORIALS[1:], ids=lambda path: path.name)
def test_a_tutorial_has_only_blocks_that_are_tested(document: Path) -> None:
    before: Block | None = None
    for block in blocks(document):
        if block.language == "text":
            assert block.title in ("Output", "Output, for example"), block
            assert before is not None, block
            assert before.runs, f"{block} is printed by nothing that runs"
        elif block.language == "sh":
            assert not block.is_marked, block
        else:
            assert block.is_file or (block.language in ("python", "console") and not block.title), block
        before = block


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_fence_of_a_document_opens_or_closes_a_block(document: Path) -> None:
    fences = [line for line in document.read_text().splitlines() if line.lstrip().startswith("```")]
    assert len(fences) == 2 * len(blocks(document))


def test_each_tutorial_has_code_that_runs() -> None:
    without = {path.name for path in TUTORIALS if not any(block.runs for block in blocks(path))}
    assert without == {"index.md"}


@pytest.mark.parametrize("document", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_and_commands_of_a_page_run_or_are_marked(document: Path) -> None:
    for block in blocks(document):
        if block.runs:
            assert document in RUN, f"{block} is in a document that no test runs"
            assert not block.title, f"{block} runs: its title is no mark"
        elif block.language == "text":
            assert block.title in ("Output", "Output, for example"), block
        elif block.language == "console":
            assert document in TUTORIALS, f"{block}: commands of other pages run"
        else:
            assert block.is_file or block.is_marked or block.language in DATA, block


def output(code: str) -> Block:
    return Block(Path("some.md"), 1, "text", "Output", code)


def test_an_output_stands_for_other_numbers_and_whatever_it_leaves_out() -> None:
    assert_prints("job 3: 0.5 µs\n  certified", output("job 17: 12.5 µs\ncertified\n"))
    assert_prints("1.5 ms, 07f8576a7d05e70d\n", output("120 µs, 1f8576a7d05e70d7\n"))
    assert_prints("a list: b, c, d\nend\n", output("a list: …\nend"))


@pytest.mark.parametrize("printed", ["job three", "job 3, and more", ""])
def test_an_output_that_differs_in_words_is_found(printed: str) -> None:
    with pytest.raises(AssertionError):
        assert_prints(printed, output("job 17"))


def test_budgets_are_cut_wherever_they_stand() -> None:
    code = 'submit(x, max_trials=64)\noptions = {"max_trials": 512}\nloopwright job submit --max-trials 4 f.py'
    assert with_fewer_trials(code, 8) == (
        'submit(x, max_trials=8)\noptions = {"max_trials": 8}\nloopwright job submit --max-trials 4 f.py'
    )
