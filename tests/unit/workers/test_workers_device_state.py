"""What a GPU's driver tells beside a timing; NVML and CUDA's driver are played."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pynvml
import pytest

from loopwright.codegen.kinds import ThrottleReason
from tuner.types import DeviceState
from workers.device import device_state
from workers.device.device_state import state_reader
from workers.messages import Device

GPU = Device("cuda", 0)
FIRST, SECOND = b"0000:18:00.0", b"0000:C1:00.0"
VISIBLE = (SECOND, FIRST)
"""The GPUs as CUDA numbers them, in the order of ``CUDA_VISIBLE_DEVICES=1,0``."""
TOLD: dict[str, Any] = {
    "nvmlDeviceGetClockInfo": lambda gpu, clock: {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 2619}[clock],
    "nvmlDeviceGetTemperature": lambda gpu, sensor: {FIRST: 30, SECOND: 61}[gpu],
    "nvmlDeviceGetPowerUsage": lambda gpu: 412_345,
    "nvmlDeviceGetCurrentClocksEventReasons": lambda gpu: pynvml.nvmlClocksEventReasonSwPowerCap,
}


class _Driver:
    """The functions of ``libcuda.so.1`` that find a GPU."""

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> int:
        if index >= len(VISIBLE):
            return 101  # CUDA_ERROR_INVALID_DEVICE
        device._obj.value = index + 40  # a handle, not the index
        return 0

    def cuDeviceGetPCIBusId(self, name: Any, length: int, device: Any) -> int:
        assert length == len(name)
        name.value = VISIBLE[device.value - 40]
        return 0


def _refused(error: int) -> Any:
    def call(*arguments: Any) -> Any:
        raise pynvml.NVMLError(error)

    return call


@pytest.fixture(autouse=True)
def nvml_starts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[None]]:
    """Play a machine of two GPUs; return a list with an entry for each start of NVML."""
    starts: list[None] = []
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: starts.append(None))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByPciBusId", lambda bus_id: bus_id)
    for name, function in TOLD.items():
        monkeypatch.setattr(pynvml, name, function)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: _Driver())
    device_state._handle.cache_clear()
    yield starts
    device_state._handle.cache_clear()


def test_a_gpu_is_found_by_its_place_on_the_bus_and_not_by_its_number() -> None:
    assert state_reader(GPU)() == DeviceState(1980, 2619, 61, 412, (ThrottleReason.POWER_CAP,))
    other = state_reader(Device("cuda", 1))()
    assert other is not None
    assert other.celsius == 30


def test_nvml_is_started_once_a_process_and_never_for_a_cpu(nvml_starts: list[None]) -> None:
    assert state_reader(Device("llvm", 0))() is None
    assert len(nvml_starts) == 0
    reader = state_reader(GPU)
    assert len(nvml_starts) == 1
    assert reader() == state_reader(GPU)() == DeviceState(1980, 2619, 61, 412, (ThrottleReason.POWER_CAP,))
    assert len(nvml_starts) == 1


def test_without_nvml_or_a_driver_there_is_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library(name: str) -> Any:
        raise OSError(f"{name}: cannot open shared object file")

    for name, error in (
        ("nvmlInit", pynvml.NVML_ERROR_LIBRARY_NOT_FOUND),
        ("nvmlInit", pynvml.NVML_ERROR_NO_PERMISSION),  # behind walls, say
        ("nvmlDeviceGetHandleByPciBusId", pynvml.NVML_ERROR_NOT_FOUND),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(pynvml, name, _refused(error))
            device_state._handle.cache_clear()
            assert state_reader(GPU)() is None
    device_state._handle.cache_clear()
    assert state_reader(Device("cuda", 2))() is None  # CUDA does not know it
    monkeypatch.setattr(ctypes, "CDLL", no_library)
    device_state._handle.cache_clear()
    assert state_reader(GPU)() is None


def test_what_the_driver_does_not_tell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = _refused(pynvml.NVML_ERROR_NOT_SUPPORTED)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetPowerUsage", refused)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", refused)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksThrottleReasons", refused)
    reader = state_reader(GPU)
    assert reader() == DeviceState(sm_mhz=1980, memory_mhz=2619, celsius=61)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetClockInfo", refused)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetTemperature", refused)
    assert reader() is None


@pytest.mark.parametrize(
    ("bits", "reasons"),
    [
        (pynvml.nvmlClocksEventReasonNone, ()),
        (pynvml.nvmlClocksEventReasonGpuIdle, ()),
        (
            pynvml.nvmlClocksEventReasonSwThermalSlowdown | pynvml.nvmlClocksEventReasonGpuIdle,
            (ThrottleReason.TEMPERATURE,),
        ),
        (
            pynvml.nvmlClocksEventReasonHwSlowdown | pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown,
            (ThrottleReason.HARDWARE_SLOWDOWN, ThrottleReason.POWER_BRAKE),
        ),
        (pynvml.nvmlClocksEventReasonSwPowerCap | 1 << 40, (ThrottleReason.POWER_CAP, ThrottleReason.OTHER)),
        (
            pynvml.nvmlClocksEventReasonAll,
            (
                ThrottleReason.CLOCK_SETTING,
                ThrottleReason.POWER_CAP,
                ThrottleReason.HARDWARE_SLOWDOWN,
                ThrottleReason.SYNC_BOOST,
                ThrottleReason.TEMPERATURE,
                ThrottleReason.HARDWARE_TEMPERATURE,
                ThrottleReason.POWER_BRAKE,
                ThrottleReason.DISPLAY_CLOCK_SETTING,
            ),
        ),
    ],
)
def test_each_bit_of_the_driver_is_a_reason_unless_it_says_that_the_gpu_is_idle(
    monkeypatch: pytest.MonkeyPatch, bits: int, reasons: tuple[ThrottleReason, ...]
) -> None:
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", lambda gpu: bits)
    state = state_reader(GPU)()
    assert state is not None
    assert state.throttled == reasons


def test_an_earlier_driver_tells_its_reasons_under_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = _refused(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", unknown)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksThrottleReasons", lambda gpu: 0)
    state = state_reader(GPU)()
    assert state is not None
    assert state.throttled == ()
