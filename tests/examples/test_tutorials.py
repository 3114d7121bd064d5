"""Every block of the README and the tutorials, in order, on a running service; with few trials, as for the examples.

That on fleets is among the pages for operators.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.snippets import FLEET, TUTORIALS, Reader, blocks

TRIALS = {"quick-start": 16, "tvmscript": 16}
"""Where the command line would say that a function deserves more than eight."""
RUN = [path for path in TUTORIALS if path != FLEET and any(block.runs for block in blocks(path))]
SLOW = ("quick-start", "packs", "pytorch", "tvmscript")
PLAYED = [
    pytest.param("played", path, id=f"played-{path.stem}", marks=pytest.mark.whole if path.stem in SLOW else ())
    for path in RUN
]
REAL = [pytest.param("real", path, id=f"real-{path.stem}", marks=pytest.mark.whole) for path in RUN]


@pytest.mark.usefixtures("_as_a_reader")
@pytest.mark.parametrize(("service", "document"), [*PLAYED, *REAL], indirect=["service"], scope="session")
def test_a_tutorial_does_what_it_says(document: Path, tmp_path: Path) -> None:
    Reader(tmp_path, trials=TRIALS.get(document.stem, 8)).read(document)
