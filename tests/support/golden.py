"""Text that people read, compared as a whole with a file: ``pytest --renew-golden`` writes the files anew."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


class Golden:
    """Compares text with files of ``tests/golden``."""

    def __init__(self, *, renews: bool) -> None:
        self._renews = renews

    def check(self, name: str, text: str) -> None:
        """Compare text, without spaces at the ends of lines. The difference in git shows what a change did to it."""
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
        file = FOLDER / name
        if self._renews:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(text)
        assert text == file.read_text(), f"if this is right, renew {name}: .venv/bin/pytest --renew-golden"
