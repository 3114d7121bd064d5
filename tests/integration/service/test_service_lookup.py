"""One request answers what is known of all functions of a model."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tvm

from loopwright import schemas
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.serialization import module_from_json, module_to_json
from loopwright.codegen.versions import CODEGEN_VERSION
from tests.integration.service.conftest import Api
from tests.support.played_fleet import MACHINE, TARGET
from tests.support.programs import product
from tests.support.tuner_programs import add_one, mlp

UNKNOWN = "0" * 32


@pytest.fixture(scope="module")
def known(job: dict[str, Any]) -> str:
    """The hash of the workload with a certified best."""
    return str(job["tasks"][0]["workload_hash"])


def look_up(api: Api, *functions: Any, status: int = 200, **fields: Any) -> Any:
    return api.post("/workloads/lookup", {"functions": list(functions), **fields}, status)


def test_hits_and_misses_are_told_apart_and_equal_functions_answered_once(api: Api, known: str) -> None:
    said = look_up(api, UNKNOWN, known, known, UNKNOWN)
    assert said == look_up(api, UNKNOWN, known, known, UNKNOWN)  # of a best that was written before
    answer = schemas.LookupAnswer.model_validate(said)
    assert answer.functions == [UNKNOWN, known, known, UNKNOWN]
    assert answer.misses == [UNKNOWN]
    [hit] = answer.hits
    assert hit.workload_hash == known
    # An answer is kept for all users, of whom some may not see the job that the place is from.
    assert hit.best.model_dump(mode="json") == api.get(f"/workloads/{known}/best") | {"source": None}
    assert hit.best.trace is not None
    assert hit.best.codegen_version == CODEGEN_VERSION
    assert hit.best.certificate.rounds == 5
    assert hit.module is None
    asked = {"functions": [UNKNOWN, known, known], "imported": True}
    records = schemas.RecordsAnswer.model_validate(api.post("/workloads/lookup/records", asked))
    assert (records.target, records.records) == (answer.target, {known: hit.best.record_id})


def test_auto_is_resolved_in_the_same_request(api: Api, known: str) -> None:
    assert look_up(api, known)["target"] == json.loads(TARGET)
    named = look_up(api, known, target={"kind": "llvm", "mcpu": "haswell"})
    assert (named["target"], len(named["hits"])) == (json.loads(TARGET), 1)
    empty: dict[str, Any] = {"functions": [], "hits": [], "misses": [], "imported": []}
    assert look_up(api) == {"target": json.loads(TARGET), **empty}


def test_modules_come_if_asked_for(api: Api, known: str) -> None:
    [hit] = look_up(api, known, modules=True)["hits"]
    assert hit["module"] == api.get(f"/workloads/{known}/module")


def test_a_function_may_be_given_itself(api: Api, known: str) -> None:
    module = module_from_json(api.get(f"/workloads/{known}/module")["data"])
    [(_, func)] = prim_funcs(module)
    renamed = tvm.IRModule({"mine": func.with_attr("global_symbol", "mine")})
    given = {"format": "tvm-json", "data": module_to_json(renamed)}
    other = {"format": "tvm-json", "data": module_to_json(tvm.IRModule({"f": add_one()}))}
    answer = look_up(api, other, known, given)
    assert answer["functions"][1:] == [known, known]
    assert [hit["workload_hash"] for hit in answer["hits"]] == [known]
    assert answer["misses"] == [answer["functions"][0]]


def test_one_device_class_may_be_asked_about(api: Api, known: str) -> None:
    assert len(look_up(api, known, device_class=MACHINE.id)["hits"]) == 1
    assert "no-such-class" in look_up(api, known, device_class="no-such-class", status=404)["detail"]


def test_a_guest_may_look_up(api: Api, known: str) -> None:
    link = api.post("/guest-links", {}, status=201)
    guest = {"Authorization": f"Bearer {link['token']}"}
    answer = api.http.post("/api/v1/workloads/lookup", headers=guest, json={"functions": [known]})
    assert (answer.status_code, len(answer.json()["hits"])) == (200, 1)
    assert api.http.post("/api/v1/workloads/lookup", json={"functions": [known]}).status_code == 401


@pytest.mark.parametrize(
    ("functions", "says"),
    [
        (["A" * 32], "functions.0"),
        ([UNKNOWN, "12"], "functions.1"),
        ([UNKNOWN] * (schemas.MAX_LOOKUP + 1), "10000"),
        ([{"format": "tvmscript", "data": "x"}], "tvm-json"),
        ([{"format": "tvm-json", "data": "{}"}], "JSON"),
        ([{"format": "tvm-json", "data": module_to_json(mlp(1))}], "module 0"),
    ],
    ids=["a digest in capitals", "a short digest", "too many", "TVMScript", "no module", "a Relax function"],
)
def test_what_cannot_be_looked_up_is_said(api: Api, functions: list[Any], says: str) -> None:
    problem = look_up(api, *functions, status=422)
    assert says in problem["detail"]
    assert len(problem["detail"]) < 1000


def test_an_unknown_target_is_refused(api: Api, known: str) -> None:
    assert look_up(api, known, target="nope", status=422)["type"] == "urn:loopwright:invalid-target"
    assert look_up(api, known, target="nvidia/nvidia-h100", status=422)["type"] == "urn:loopwright:target-not-offered"


def test_another_program_of_the_family_is_a_miss(api: Api, known: str) -> None:
    other = api.submit(product(16), name="another", budget={"max_trials": 20})["tasks"][0]["workload_hash"]
    assert look_up(api, other, known)["misses"] == [other]
