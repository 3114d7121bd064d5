"""The clocks, temperature and power of a GPU beside a timing, by NVML.

A GPU is found by its place on the PCI bus: NVML numbers all GPUs of the machine, CUDA those that
``CUDA_VISIBLE_DEVICES`` leaves, in its order.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import pynvml

from loopwright.codegen.kinds import ThrottleReason
from tuner.types import DeviceState
from workers.messages import Device

_CUDA = "libcuda.so.1"
_PCI_BYTES = 32
"""More than ``domain:bus:device.function`` takes."""

_REASONS = {
    pynvml.nvmlClocksEventReasonApplicationsClocksSetting: ThrottleReason.CLOCK_SETTING,
    pynvml.nvmlClocksEventReasonSwPowerCap: ThrottleReason.POWER_CAP,
    pynvml.nvmlClocksEventReasonHwSlowdown: ThrottleReason.HARDWARE_SLOWDOWN,
    pynvml.nvmlClocksEventReasonSyncBoost: ThrottleReason.SYNC_BOOST,
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: ThrottleReason.TEMPERATURE,
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: ThrottleReason.HARDWARE_TEMPERATURE,
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: ThrottleReason.POWER_BRAKE,
    pynvml.nvmlClocksEventReasonDisplayClockSetting: ThrottleReason.DISPLAY_CLOCK_SETTING,
}


def state_reader(device: Device) -> Callable[[], DeviceState | None]:
    """Return a function that reads the state of a device, which takes it some milliseconds.

    It returns None for a CPU, whose clocks a shared host does not tell, and if NVML cannot be used. NVML is started
    here, once a process, not while a timing waits for the reading.
    """
    handle = _handle(device.index) if device.kind == "cuda" else None
    return lambda: None if handle is None else _state(handle)


@functools.cache
def _handle(index: int) -> Any | None:
    """Return NVML's handle of CUDA's device ``index``, or None."""
    try:
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetHandleByPciBusId(_pci_bus_id(index))
    except (OSError, pynvml.NVMLError):
        return None


def _pci_bus_id(index: int) -> bytes:
    """Return where CUDA's device ``index`` of this process is. Raises OSError."""
    cuda = ctypes.CDLL(_CUDA)
    device, name = ctypes.c_int(), ctypes.create_string_buffer(_PCI_BYTES)
    steps: tuple[Callable[[], int], ...] = (
        lambda: cuda.cuInit(0),
        lambda: cuda.cuDeviceGet(ctypes.byref(device), index),
        lambda: cuda.cuDeviceGetPCIBusId(name, _PCI_BYTES, device),
    )
    for step in steps:
        if (error := step()) != 0:
            raise OSError(f"CUDA's driver answered {error}")
    return name.value


def _state(handle: Any) -> DeviceState | None:
    """Return what NVML tells of a device, or None if it tells nothing."""
    milliwatts = _told(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
    reasons = _told(
        lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),  # of drivers before 535
    )
    state = DeviceState(
        sm_mhz=_told(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        memory_mhz=_told(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
        celsius=_told(lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
        watts=None if milliwatts is None else round(milliwatts / 1000),
        throttled=None if reasons is None else _throttle_reasons(reasons),
    )
    return None if state == DeviceState() else state


def _told(*queries: Callable[[], int]) -> int | None:
    """Return the answer of the first query that the driver and the device know."""
    for query in queries:
        try:
            return query()
        except pynvml.NVMLError:
            continue
    return None


def _throttle_reasons(bits: int) -> tuple[ThrottleReason, ...]:
    """Return the reasons, except that the device is idle, as it is after the last call."""
    bits &= ~pynvml.nvmlClocksEventReasonGpuIdle
    known = tuple(reason for bit, reason in _REASONS.items() if bits & bit)
    return known if not bits & ~sum(_REASONS) else (*known, ThrottleReason.OTHER)
