"""Where results of benchmarks are kept.

A harness writes its raw results below ``benchmarks/results/``, which git ignores. ``python -m benchmarks.NAME.report
--pack`` compresses them into one tracked file, ``docs/benchmarks/NAME.jsonl.xz``, with one JSON object a line. Report
and plots are drawn from that file alone, so that everybody who has the repository can draw them again.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RAW = ROOT / "benchmarks" / "results"
DOCS = ROOT / "docs" / "benchmarks"


def kept(name: str) -> Path:
    """Return the path of the compressed results of a benchmark."""
    return DOCS / f"{name}.jsonl.xz"


def pack(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write one JSON object a line, compressed."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def unpack(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects that `pack` wrote."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def report_parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's ``report`` command."""
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument("--pack", action="store_true", help="first replace the kept results by those of the last run")
    return parser


def write_raw(name: str, figures: dict[str, Any]) -> Path:
    """Write the figures of a benchmark that has a single record, and return the file."""
    path = RAW / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=2) + "\n")
    return path


def figures(name: str, *, repack: bool) -> dict[str, Any]:
    """Return the kept figures of a benchmark that has a single record.

    Args:
        repack: Replace them first by those of the last run.

    Raises:
        SystemExit: There is no last run to pack.
    """
    if repack:
        raw = RAW / f"{name}.json"
        if not raw.exists():
            raise SystemExit(f"{raw} does not exist: run the benchmark first")
        pack(kept(name), [json.loads(raw.read_text())])
    (record,) = unpack(kept(name))
    return record
