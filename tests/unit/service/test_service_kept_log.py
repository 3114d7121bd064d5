"""What a process writes is kept whole while it is little, and limited when it is much."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from service.process.kept_log import KeptLog

FILE_BYTES = 10_000
OLD_FILES = 2


def log_of(program: str, path: Path) -> KeptLog:
    """The log of a Python program that has ended, written to ``path``."""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    log = KeptLog(process.stdout, path, file_bytes=FILE_BYTES, old_files=OLD_FILES)
    assert process.wait(60) == 0
    log.flush(60)
    return log


def test_log_holds_what_python_its_children_and_native_code_write(tmp_path: Path) -> None:
    path = tmp_path / "role.log"
    program = "import os, sys; print('one', flush=True); os.write(2, b'two\\n'); os.system('echo three')"
    log_of(program, path)
    assert path.read_text() == "one\ntwo\nthree\n"


def test_log_continues_that_of_an_earlier_process(tmp_path: Path) -> None:
    path = tmp_path / "role.log"
    log_of("print('first')", path)
    log_of("print('second')", path)
    assert path.read_text() == "first\nsecond\n"


def test_a_long_log_takes_a_limited_space_and_ends_with_the_newest_line(tmp_path: Path) -> None:
    path = tmp_path / "role.log"
    log_of("for i in range(20_000): print(f'line {i}')", path)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["role.log", "role.log.1", "role.log.2"]
    assert all(file.stat().st_size <= FILE_BYTES for file in files)
    text = "".join(file.read_text() for file in reversed(files))
    numbers = [int(line.split()[1]) for line in text.splitlines()]
    assert numbers == list(range(20_000 - len(numbers), 20_000))


def test_bytes_that_are_no_text_and_lines_without_end_are_logged(tmp_path: Path) -> None:
    path = tmp_path / "role.log"
    log_of("import os; os.write(1, b'a\\xffb\\n' + b'x' * 200_000)", path)
    text = "".join(file.read_text() for file in sorted(tmp_path.iterdir(), reverse=True))
    assert text.replace("\n", "").endswith("x" * 50_000)
    log_of("import os; os.write(1, b'a\\xffb\\n')", tmp_path / "other.log")
    assert (tmp_path / "other.log").read_text() == "a\\xffb\n"


def test_a_process_whose_log_cannot_be_written_goes_on_and_is_heard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "role.log"
    path.symlink_to("/dev/full")
    log_of("for i in range(5_000): print('x' * 100)", path)
    assert path.is_symlink()
    complaint, *lines = capsys.readouterr().err.splitlines()
    assert complaint.startswith(f"loopwright: {path} cannot be written")
    assert "No space left" in complaint
    assert lines == ["role.log: " + "x" * 100] * 5_000
