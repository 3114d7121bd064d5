"""What users read of an error tells nothing of this machine."""

from __future__ import annotations

from workers.error_text import first_line, for_users

NATIVE = """Traceback (most recent call last):
  File "/opt/lib/tvm/ir.py", line 3, in apply
    raise error
tvm.error.InternalError: Check failed: x > 0 at 0x00007f12ab34cd56
  [bt] (0) /opt/lib/libtvm.so(+0x1234) [0x7f12ab34]
Stack trace:
"""


def test_the_message_is_left() -> None:
    assert for_users(NATIVE) == "tvm.error.InternalError: Check failed: x > 0 at 0x…"


def test_small_constants_are_no_addresses() -> None:
    assert for_users("mask 0xff is odd") == "mask 0xff is odd"


def test_a_long_message_is_cut_at_its_beginning() -> None:
    assert for_users("a" * 1000 + "the end") == ("a" * 1000 + "the end")[-500:]


def test_of_a_dead_process_the_first_line_is_left() -> None:
    assert first_line("\nLLVM ERROR: out of registers at 0x7f12ab34cd\n#0 /opt/lib/libtvm.so\n") == (
        "LLVM ERROR: out of registers at 0x…"
    )
    assert first_line("") == ""
