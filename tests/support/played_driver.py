"""NVIDIA's driver, played by two libraries that a C compiler makes: what finds a GPU, and what NVML tells of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from loopwright.codegen.kinds import ThrottleReason
from tuner.types import DeviceState

TOLD = DeviceState(1980, 2619, 61, 412, (ThrottleReason.POWER_CAP,))
_CUDA = """
#include <stdio.h>
int cuInit(unsigned flags) { return flags; }
int cuDeviceGet(int *device, int index) { *device = index + 40; return 0; }
int cuDeviceGetPCIBusId(char *name, int length, int device) {
    return snprintf(name, length, "0000:%02d:00.0", device) >= length;
}
"""
_NVML = """
#include <string.h>
static int gpu, is_started;
int nvmlInitWithFlags(unsigned flags) { is_started = 1; return flags; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *name, void **device) {
    *device = &gpu;
    return !is_started ? 1 : strcmp(name, "0000:43:00.0") ? 6 : 0;
}
int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz) { *mhz = clock == 1 ? 1980 : 2619; return 0; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) { *celsius = 61; return sensor; }
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = 412345; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits) { *bits = 5; return 0; }
"""
INDEX = 3
"""CUDA's number of the only GPU that NVML knows."""


def install(folder: Path) -> None:
    """Put the libraries into a folder, which is to be in ``LD_LIBRARY_PATH``."""
    for name, source in (("libcuda.so.1", _CUDA), ("libnvidia-ml.so.1", _NVML)):
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / name)]
        subprocess.run(command, input=source, text=True, check=True)
