"""An animation of a terminal in which a program is tuned: ``python -m tests.browser.terminal FILE.gif``.

A real shell runs real commands against a real service. Only the typing is played.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pexpect
import pyte
from matplotlib.font_manager import findfont
from PIL import Image, ImageDraw, ImageFont

from service.demo import MODEL
from tests.support.service import Service

COLUMNS, ROWS = 96, 30
TICK = 0.2
"""Seconds between two looks at the screen."""
KEY = 0.04
"""Seconds for each key."""
PAUSE = 2.5
"""Seconds to read what a command printed."""
FONT_SIZE = 14
FOREGROUND, BACKGROUND = "#d4d7dd", "#1a1b1e"
COLOURS = {
    "black": "#1a1b1e",
    "red": "#ff6b6b",
    "green": "#69db7c",
    "brown": "#ffd43b",
    "blue": "#74c0fc",
    "magenta": "#da77f2",
    "cyan": "#66d9e8",
    "white": "#d4d7dd",
}
"""By pyte's names; it calls yellow brown. Bright ones are drawn like the others."""
PROMPT = "$ "

COMMANDS = (
    "head -9 mlp.py",
    "loopwright job submit mlp.py --max-trials 128 --wait",
    "loopwright schedule compile mlp.py --output mlp.so",
    "loopwright job submit mlp.py --max-trials 128 --wait  # the database answers",
)


@dataclass
class Frame:
    """A screen, and for how many seconds it was seen."""

    image: Image.Image
    seconds: float = 0.0


def reduced(image: Image.Image) -> Image.Image:
    """A picture in 16 colours."""
    return image.quantize(16, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)


class Recorder:
    """A shell in a terminal of its own, and the frames of what it shows."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.frames: list[Frame] = []
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        font = findfont("DejaVu Sans Mono")
        self._font = ImageFont.truetype(font, FONT_SIZE)
        self._bold = ImageFont.truetype(findfont("DejaVu Sans Mono:bold"), FONT_SIZE)
        self._symbols = ImageFont.truetype(findfont("DejaVu Sans"), FONT_SIZE)
        self._width = self._font.getlength("M")
        self._height = FONT_SIZE + 4
        terminal = {"PS1": PROMPT, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._shell: pexpect.spawn[bytes] = pexpect.spawn(
            "bash",
            ["--norc", "--noediting"],
            cwd=str(folder),
            env={**environment, **terminal},
            dimensions=(ROWS, COLUMNS),
        )

    def run(self, command: str, seconds: float = 120.0) -> None:
        """Type a command, and record until the prompt is back. Raises TimeoutError if it is not."""
        self._until_prompt(10.0)
        for key in command:
            self._shell.send(key)
            self._record(KEY)
        self._record(0.4)
        self._shell.send("\r")
        self._record(TICK)
        self._until_prompt(seconds)
        self._record(PAUSE)

    def save(self, file: Path) -> None:
        """Write the frames as an animated GIF with one palette: with one for each frame it takes a third more."""
        width, height = self.frames[0].image.size
        some = [self.frames[i * (len(self.frames) - 1) // 7].image for i in range(8)]
        together = Image.new("RGB", (width, height * len(some)))
        for i, image in enumerate(some):
            together.paste(image.convert("RGB"), (0, i * height))
        palette = reduced(together)
        first, *others = [
            frame.image.convert("RGB").quantize(palette=palette, dither=Image.Dither.NONE) for frame in self.frames
        ]
        durations = [max(20, round(1000 * frame.seconds)) for frame in self.frames]
        first.save(file, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)

    def _until_prompt(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._screen.display[self._screen.cursor.y].rstrip() != PROMPT.rstrip():
            if time.monotonic() > deadline:
                raise TimeoutError("\n".join(self._screen.display))
            self._record(TICK)

    def _record(self, seconds: float) -> None:
        started = time.monotonic()
        while (left := started + seconds - time.monotonic()) > 0:
            try:
                self._stream.feed(self._shell.read_nonblocking(65536, timeout=left))
            except pexpect.TIMEOUT:
                break
        if self._screen.dirty or not self.frames:
            self._screen.dirty.clear()
            image = self._drawn()
            if not self.frames or image.tobytes() != self.frames[-1].image.tobytes():
                self.frames.append(Frame(image))
        self.frames[-1].seconds += time.monotonic() - started

    def _drawn(self) -> Image.Image:
        image = Image.new("RGB", (round(COLUMNS * self._width) + 20, ROWS * self._height + 20), BACKGROUND)
        canvas = ImageDraw.Draw(image)
        for row, column, text, colour, is_bold in self._runs():
            place = (10 + column * self._width, 10 + row * self._height)
            is_symbol = "\N{BRAILLE PATTERN BLANK}" <= text <= "\N{BRAILLE PATTERN DOTS-12345678}"
            font = self._symbols if is_symbol else self._bold if is_bold else self._font
            canvas.text(place, text, fill=colour, font=font)
        if not self._screen.cursor.hidden:
            left, top = 10 + self._screen.cursor.x * self._width, 10 + self._screen.cursor.y * self._height
            canvas.rectangle((left, top, left + self._width, top + self._height - 2), fill="#868e96")
        return reduced(image)

    def _runs(self) -> Iterator[tuple[int, int, str, str, bool]]:
        for row in range(ROWS):
            for column in range(COLUMNS):
                cell = self._screen.buffer[row][column]
                if cell.data.strip():
                    colour = COLOURS.get(cell.fg.removeprefix("bright"), FOREGROUND)
                    if cell.fg not in ("default", *COLOURS) and len(cell.fg) == 6:
                        colour = f"#{cell.fg}"
                    yield row, column, cell.data, colour, cell.bold


def main(file: Path) -> None:
    with tempfile.TemporaryDirectory() as home, Service(Path(home)) as service:
        folder = Path(home) / "work"
        folder.mkdir()
        (folder / "mlp.py").write_text(MODEL.lstrip())
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        client = {"LOOPWRIGHT_URL": service.url, "LOOPWRIGHT_TOKEN": service.token}
        recorder = Recorder(folder, {**service.environment, **client, "PATH": path})
        for command in COMMANDS:
            recorder.run(command)
        recorder.save(file)
    seconds = sum(frame.seconds for frame in recorder.frames)
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB, {seconds:.0f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
