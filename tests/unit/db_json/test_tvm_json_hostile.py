"""Lines that cannot be taken: each is reported with its reason, and the good ones around it are kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm.s_tir import Schedule

from loopwright.codegen.program.digest import workload_digest
from loopwright.codegen.serialization import module_to_json, trace_to_json
from tests.unit.db_json import stock

MM_RELU = stock.module(stock.MM_RELU)
WORKLOAD = stock.workload_line(module_to_json(MM_RELU))


def _trace_of(schedule: Schedule) -> list[Any]:
    return list(json.loads(trace_to_json(schedule.trace)))


def _tiled() -> list[Any]:
    schedule = Schedule(MM_RELU, seed=3)
    loop, *_ = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.split(loop, schedule.sample_perfect_tile(loop, 2))
    return _trace_of(schedule)


def _padding_that_calls_out() -> list[Any]:
    """A layout's padding is an expression, which TVM puts into the program as it is."""
    schedule = Schedule(MM_RELU)
    call = tvm.tirx.call_pure_extern("float32", "system", 1)
    schedule.transform_layout("Y", ("write", 0), lambda i, j: [i, j // 48, j % 48], pad_value=lambda *_: call)
    return _trace_of(schedule)


def _kept_in_int16() -> list[Any]:
    schedule = Schedule(MM_RELU)
    schedule.unsafe_set_dtype("Y", 0, "int16")
    return _trace_of(schedule)


def _workload(function: str) -> str:
    return stock.workload_line(module_to_json(stock.module(function)))


TRACE = _tiled()
RECORD = stock.record_line(TRACE)
BLOCK, *_ = TRACE[0]
OTHER_VERSION = json.loads(module_to_json(MM_RELU)) | {"metadata": {"tvm_version": "0.26.0"}}
OLD_VERSION = {"root": 1, "nodes": [{"type_key": ""}], "attrs": {"tvm_version": "0.15.0"}}
CALLS_OUT = stock.MM_RELU.replace("T.max(Y[vi, vj], T.float32(0))", 'T.call_extern("float32", "system", Y[vi, vj])')
SYMBOLIC = stock.MM_RELU.replace("A: T.Buffer((64, 64)", 'A: T.Buffer(("n", 64)')


def _with(*instruction: Any) -> str:
    return stock.record_line([[BLOCK, list(instruction)], []])


BAD_RECORDS = [
    ("{", "Expecting property name"),
    ("[]", "not a record"),
    ("[true, [[], [1], {}, []]]", "not a record"),
    ("[0, [[], [1], {}]]", "not a record"),
    ("[" * 100_000, "RecursionError|recursion"),
    (stock.record_line(TRACE, workload=7), "its workload, database_workload.json line 8, is missing"),
    (stock.record_line(TRACE, workload=-1), "is missing"),
    (stock.record_line(TRACE, [1e10]), "a failed measurement"),
    (stock.record_line(TRACE, [10000000000, 10000000000]), "a failed measurement"),
    (stock.record_line(TRACE, None), "no measured seconds"),
    (stock.record_line(TRACE, []), "no measured seconds"),
    (stock.record_line(TRACE, [True]), "no measured seconds"),
    (stock.record_line(TRACE, [-1.0]), "not positive"),
    (stock.record_line(TRACE, [float("nan")]), "not positive"),
    (stock.record_line(TRACE, [10**400]), "too large"),
    (stock.record_line(TRACE, target=[]), "for which target"),
    (stock.record_line(TRACE, target={"kind": "none"}), "TVM does not know the target"),
    (stock.record_line(TRACE, target={"kind": "hexagon"}), "cannot be tuned"),
    (stock.record_line(None), "is not TVM's"),
    (stock.record_line([["GetSBlock"], []]), "malformed instruction"),
    (_with("UnsafeSetDType", ["b0"], [0, "float16"], []), "uses UnsafeSetDType"),
    (stock.record_line(_kept_in_int16()), "keeps in int16 what is not of one byte: the elements of Y"),
    (_with("Annotate", ["b0", '"void f() {}"'], ["pragma_import_c"], []), "pragma_import_c"),
    (_with("Annotate", ["b0", 1], [["unhashable"]], []), "sets the annotation"),
    (_with("Tensorize", ["b0"], ["my_intrinsic", 1], []), "'my_intrinsic', which is no intrinsic of TVM"),
    (_with("Tensorize", ["b0"], [], []), "None, which is no intrinsic"),
    (stock.record_line(_padding_that_calls_out()), "foreign code.*`tirx.call_pure_extern` of 'system'"),
    (
        stock.record_line([[["GetSBlock", [], ["Z", "main"], ["b0"]]], []]),
        "does not apply to its workload: .*Cannot find a block",
    ),
    (stock.record_line([TRACE[0], []]), "decisions are incomplete or do not fit"),
    (stock.record_line([TRACE[0], [[TRACE[1][0][0], [5, 5]]]]), "decisions are incomplete or do not fit"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_RECORDS, ids=[reason[:25] for _, reason in BAD_RECORDS])
def test_a_bad_record_is_reported_and_the_others_are_kept(line: str, reason: str) -> None:
    taken = stock.read(WORKLOAD, f"{RECORD}\n\n{line}\n{RECORD}\n")
    assert len(taken["records"]) == 2
    (error,) = taken["errors"]
    assert error.startswith("database_tuning_record.json line 3: ")
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(error)


BAD_WORKLOADS = [
    ("7", "not a workload"),
    ('["1", "####"]', "cut off"),
    (f'["1", "{json.loads(WORKLOAD)[1][:-400]}"]', "cut off"),
    (stock.workload_line("{}"), "not TVM's JSON|unknown version"),
    (stock.workload_line(json.dumps(OTHER_VERSION)), "written by TVM 0.26.0, but TVM 0.27.0"),
    (stock.workload_line(json.dumps(OLD_VERSION)), "written by TVM 0.15.0, but TVM 0.27.0"),
    (stock.workload_line(module_to_json(tvm.IRModule({"f": MM_RELU["main"]}))), "must hold one PrimFunc"),
    (_workload(CALLS_OUT), "calls external code.*`tirx.call_extern` of 'system'"),
    (_workload(SYMBOLIC), "symbolic shape"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_WORKLOADS, ids=[reason[:25] for _, reason in BAD_WORKLOADS])
def test_a_bad_workload_takes_only_its_own_records_along(line: str, reason: str) -> None:
    records = "\n".join(stock.record_line(TRACE, workload=position) for position in (0, 1))
    taken = stock.read(f"{WORKLOAD}\n{line}\n{_workload(stock.DOT)}", records)
    assert [workload["hash"] for workload in taken["workloads"]] == [
        workload_digest(MM_RELU),
        workload_digest(stock.module(stock.DOT)),
    ]
    assert len(taken["records"]) == 1
    workload_error, record_error = taken["errors"]
    with pytest.raises(AssertionError, match=f"^database_workload.json line 2: .*({reason})"):
        raise AssertionError(workload_error)
    assert record_error.startswith("database_tuning_record.json line 2: its workload, database_workload.json line 2")


_DAMAGE = ["", "0", "-1", "null", "[]", '"', "]", ",", "b0", "1e99"]


@st.composite
def _damaged(draw: st.DrawFn, line: str) -> str:
    """The line with a few stretches of it replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(line)))
        end = start + draw(st.integers(0, 6))
        line = line[:start] + draw(st.sampled_from(_DAMAGE)) + line[end:]
    return line


def _reading_goes_on(line: str) -> None:
    taken = stock.read(WORKLOAD, f"{RECORD}\n{line}\n{RECORD}")
    assert len(taken["records"]) + len(taken["errors"]) == 3
    assert len(taken["records"]) >= 2


@settings(max_examples=40, derandomize=True)
@given(_damaged(RECORD))
def test_whatever_a_record_says_reading_goes_on(line: str) -> None:
    _reading_goes_on(line)


@pytest.mark.whole
@settings(max_examples=400, derandomize=True)
@given(_damaged(RECORD))
def test_whatever_more_records_say_reading_goes_on(line: str) -> None:
    _reading_goes_on(line)


@settings(max_examples=15, derandomize=True)
@given(_damaged(WORKLOAD))
def test_whatever_a_workload_says_reading_goes_on(line: str) -> None:
    taken = stock.read(f"{line}\n{WORKLOAD}", stock.record_line(TRACE, workload=1))
    assert len(taken["records"]) == 1
    assert taken["workloads"]
