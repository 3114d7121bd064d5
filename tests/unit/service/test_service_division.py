"""How controllers divide devices: by the order of all jobs, and with as few changes as that needs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from db.device_leases import Device
from db.inputs import Demand
from service.controller.division import PATIENCE_SECONDS, divide

CPU, GPU = "cpu", "gpu rack=a"


def devices(*leased_to: str | None, kind: str = CPU) -> list[Device]:
    return [Device(f"{kind}-{number}", kind, owner) for number, owner in enumerate(leased_to)]


def demand(
    devices: int = 1, *, priority: int = 0, seconds: float = 10.0, waited: float = 0.0, kinds: tuple[str, ...] = (CPU,)
) -> Demand:
    return Demand(priority, seconds, devices, waited, kinds)


def counts(divided: dict[str, str]) -> Counter[str]:
    return Counter(divided.values())


def test_what_nobody_else_wants_goes_to_who_wants_any() -> None:
    assert counts(divide(devices(None, "b", "c"), {"a": [demand(1)]})) == {"a": 3}


def test_nobody_wants_a_device() -> None:
    assert divide(devices(None, "a"), {"a": [], "b": []}) == {}


def test_priority_comes_before_what_is_left() -> None:
    demands = {"a": [demand(3, seconds=1.0)], "b": [demand(3, seconds=500.0, priority=1)]}
    assert counts(divide(devices("a", "a", "a", "a"), demands)) == {"b": 3, "a": 1}


def test_the_least_left_comes_first() -> None:
    demands = {"a": [demand(2, seconds=100.0)], "b": [demand(2, seconds=5.0)]}
    assert counts(divide(devices("a", "a", None), demands)) == {"b": 2, "a": 1}


def test_who_has_waited_for_long_gets_one_device_whatever_its_place() -> None:
    waits = demand(3, seconds=900.0, waited=PATIENCE_SECONDS)
    assert counts(divide(devices("a", "a", "a"), {"a": [demand(3, priority=9)], "b": [waits]})) == {"a": 2, "b": 1}


def test_a_controller_keeps_what_it_has() -> None:
    demands = {"a": [demand(1, seconds=1.0)], "b": [demand(1)], "c": [demand(1)]}
    held = devices("c", "b", "a", "b", "c")
    assert divide(held, demands) == {device.id: device.leased_to for device in held}


def test_a_free_device_is_taken_before_one_that_another_has() -> None:
    divided = divide(devices("b", None), {"a": [demand(1, seconds=1.0)], "b": [demand(1)]})
    assert divided == {"cpu-0": "b", "cpu-1": "a"}


def test_who_has_the_most_gives() -> None:
    held = devices("b", "c", "c", "c")
    divided = divide(held, {"a": [demand(2, seconds=1.0)], "b": [demand(1)], "c": [demand(1)]})
    assert counts(divided) == {"a": 2, "b": 1, "c": 1}
    assert divided["cpu-0"] == "b"


def test_a_device_of_another_kind_is_no_help() -> None:
    held = devices(None) + devices(None, kind=GPU)
    assert divide(held, {"a": [demand(5, kinds=(GPU,))]}) == {f"{GPU}-0": "a"}


_demands = st.builds(
    demand,
    st.integers(1, 6),
    priority=st.integers(-1, 1),
    seconds=st.sampled_from([0.0, 1.0, 50.0]),
    waited=st.sampled_from([0.0, 30.0]),
    kinds=st.sampled_from([(CPU,), (GPU,), (CPU, GPU)]),
)
_owners = st.sampled_from(["a", "b", "c"])


@given(
    st.lists(st.tuples(st.sampled_from([CPU, GPU]), st.none() | _owners), max_size=8),
    st.dictionaries(_owners, st.lists(_demands, max_size=3)),
)
def test_all_that_is_wanted_is_used_and_the_division_comes_to_rest(
    held: list[tuple[str, str | None]], demands: dict[str, list[Demand]]
) -> None:
    before = [Device(str(number), kind, owner) for number, (kind, owner) in enumerate(held)]
    divided = divide(before, demands)
    wanted = {owner: {kind for each in own for kind in each.kinds} for owner, own in demands.items()}
    for device in before:
        if device.id in divided:
            assert device.kind in wanted[divided[device.id]]
        else:
            assert all(device.kind not in kinds for kinds in wanted.values())
    # Who may use several kinds takes first what its controller has, so that it may take a few turns.
    for _ in range(len(before) + 1):
        earlier = divided
        divided = divide([Device(device.id, device.kind, earlier.get(device.id)) for device in before], demands)
    assert divided == earlier
