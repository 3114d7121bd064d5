"""TVMScript of earlier TVM versions: what is translated, and what is left as it is."""

from __future__ import annotations

import pytest
from tvm_ffi import structural_equal

from loopwright import frontends
from loopwright.frontends.dialect import translate
from tests.support.programs import MM_RELU, TUTORIAL


def test_a_tutorial_of_an_earlier_version_parses() -> None:
    module = frontends.to_program(TUTORIAL).module
    assert sorted(str(var.name_hint) for var in module.get_global_vars()) == ["main", "mm_relu"]


def test_the_user_is_told_what_was_translated() -> None:
    notes = translate(TUTORIAL).notes
    told = " ".join(notes)
    for old, new in (
        ("@T.prim_func", "@T.prim_func(s_tir=True)"),
        ("T.block", "T.sblock"),
        ("T.alloc_buffer", "T.sblock_alloc_buffer"),
        ("tir.noalias", "tirx.noalias"),
        ("out_sinfo", "out_ty"),
        ("tir", "tirx"),
    ):
        assert f"{old} to {new}" in told
    assert "T.block to T.sblock (2 times)" in told


def test_lines_and_comments_stay_where_they_are() -> None:
    before, after = TUTORIAL.splitlines(), translate(TUTORIAL).text.splitlines()
    assert len(before) == len(after)
    assert after[8].endswith("# a comment stays")
    assert [number for number, (one, other) in enumerate(zip(before, after, strict=True)) if one != other] == [
        2, 6, 8, 9, 11, 17, 25,
    ]  # fmt: skip


def test_todays_dialect_is_left_alone() -> None:
    assert translate(MM_RELU) == translate(translate(MM_RELU).text)
    assert translate(MM_RELU).notes == ()
    assert translate(MM_RELU).text == MM_RELU


def test_what_was_translated_is_todays() -> None:
    assert translate(translate(TUTORIAL).text).notes == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('x: T.Buffer[(4, 4), "float32"]', 'x: T.Buffer((4, 4), "float32")'),
        ("x = T.buffer_decl((4,))", "x = T.Buffer((4,))"),
        ('ä = T.block("ü") + T.block_attr({})', 'ä = T.sblock("ü") + T.sblock_attr({})'),
        ("f(a, out_sinfo=1, b=2)", "f(a, out_ty=1, b=2)"),
    ],
)
def test_words(old: str, new: str) -> None:
    assert translate(old).text == new


def test_options_of_a_decorator_are_kept() -> None:
    source = '@T.prim_func(private=True)\ndef f(x: T.handle):\n    with T.block("x"):\n        pass\n'
    assert translate(source).text.splitlines()[0] == "@T.prim_func(s_tir=True, private=True)"


def test_a_function_without_blocks_stays() -> None:
    source = "@T.prim_func\ndef f(x: T.handle):\n    y = T.alloc_buffer((4,))\n"
    assert translate(source).text == source


@pytest.mark.parametrize("text", ["", "def f(:", "\x00", "(" * 5000])
def test_no_python_is_returned_as_it_is(text: str) -> None:
    assert translate(text).text == text


def test_the_translation_means_the_same() -> None:
    old = MM_RELU.replace("(s_tir=True)", "").replace("T.sblock(", "T.block(").replace("sblock_alloc", "alloc")
    assert old != MM_RELU
    assert structural_equal(frontends.to_program(old).module, frontends.to_program(MM_RELU).module)
