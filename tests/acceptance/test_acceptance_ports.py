"""What a service with a Ray of its own listens on: loopback, and nothing else."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from ipaddress import IPv6Address, ip_address
from pathlib import Path

import psutil
import pytest

from tests.support.processes import clean_environment
from tests.support.programs import product_relu
from tests.support.service import ROOT, Service

PROGRAM = product_relu(36)


def is_loopback(text: str) -> bool:
    """Return whether an address is of loopback, also as IPv6 writes one of IPv4 (``::ffff:127.0.0.1``)."""
    address = ip_address(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def listening(service: Service) -> dict[str, set[str]]:
    """The addresses that TCP and UDP sockets of the service's processes are bound to, by process name."""
    found: dict[str, set[str]] = {}
    for process in service.note_processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            for each in process.net_connections(kind="inet"):
                if each.laddr and each.status in (psutil.CONN_LISTEN, psutil.CONN_NONE):
                    found.setdefault(process.name(), set()).add(each.laddr.ip)
    return found


def test_no_process_listens_beyond_loopback(service: Service) -> None:
    job_id = service.submit(PROGRAM, trials=1000)
    service.in_the_middle(job_id)  # its loop, a builder and a measurer are up
    found = listening(service)
    service.http.post(f"/api/v1/jobs/{job_id}/cancel")
    assert service.finished(job_id)["state"] == "cancelled"
    assert {"raylet", "gcs_server"} <= set(found)
    assert len(found) > 4, found
    assert {name: addresses for name, addresses in found.items() if not all(map(is_loopback, addresses))} == {}


@pytest.mark.whole
def test_a_service_on_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "service", "--data-dir", str(tmp_path / "data"), "--port", port]
        other = subprocess.run(
            command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=120, check=False
        )
    assert other.returncode != 0
    assert other.stdout == ""
    assert port in other.stderr
