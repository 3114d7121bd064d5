"""TVM's RPC server for a device that Loopwright measures on. Needs Python and apache-tvm, nothing of Loopwright.

    TVM_NUM_THREADS=4 TVM_BIND_THREADS=0 python serve.py --port 9090
    TVM_NUM_THREADS=4 TVM_BIND_THREADS=0 python serve.py --port 9090 --tracker HOST:9190 --key pi5

Set TVM_NUM_THREADS to the number of cores. TVM's own `tvm.exec.rpc_server` goes on without answering once a program has
crashed in it; this server exits, so that whoever started it starts it again (see `loopwright-rpc-device.service`).
It also says what the device is: the version of TVM, the processor and its features.
"""

import argparse
import json
import os
import platform
import sys
import threading

import tvm
import tvm_ffi
from tvm.rpc.server import PopenRPCServerState
from tvm.support.utils import TempDirectory


@tvm_ffi.register_global_func("loopwright.rpc_device.describe")
def describe() -> str:
    """Return what the device is, as JSON."""
    fields = _cpuinfo()
    features = fields.get("Features") or fields.get("flags") or fields.get("isa") or ""
    names = ("model name", "Model", "Hardware", "uarch", "CPU part")
    return json.dumps(
        {
            "tvm": tvm.__version__,
            "machine": platform.machine(),
            "cpu": next((fields[name] for name in names if fields.get(name)), platform.machine()),
            "features": sorted(features.split()),
            "cores": len(os.sched_getaffinity(0)),
            "system": f"{platform.system()} {platform.release()}",
        }
    )


def _cpuinfo() -> dict:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = file.read().splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _exit(failure: threading.ExceptHookArgs) -> None:
    print(f"serve.py: {failure.exc_value}; to be started again", file=sys.stderr, flush=True)
    TempDirectory.remove_tempdirs()
    os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve this device to Loopwright.")
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on (default: all)")
    parser.add_argument("--port", type=int, default=9090, help="port to listen on (default 9090)")
    parser.add_argument("--tracker", help="HOST:PORT of a TVM RPC tracker to join")
    parser.add_argument("--key", default="", help="the tracker's queue for this device, or a key that clients give")
    options = parser.parse_args()
    threading.excepthook = _exit
    tracker = None
    if options.tracker:
        host, _, port = options.tracker.rpartition(":")
        tracker = (host, int(port))
    state = PopenRPCServerState(options.host, options.port, options.port + 1, tracker_addr=tracker, key=options.key)
    state.thread.join()


if __name__ == "__main__":
    main()
