"""What a fork of a warm child can do behind walls of each level that this machine has: compute, and nothing else."""

from __future__ import annotations

import itertools
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopwright.codegen.host import lock as host_lock
from tests.security import attacks
from workers.child.warm_child import ChildTimeout, WarmChild
from workers.walls import levels
from workers.walls.levels import Level, NoWalls, Policy, choose, obstacles
from workers.walls.paths import CHECKOUT

ATTACKS = attacks.__name__
SECRET = "a secret of the service"
REFUSED = ("PermissionError", "FileNotFoundError")


@pytest.fixture(scope="module", params=[Level.NAMESPACES, Level.LANDLOCK])
def level(request: pytest.FixtureRequest) -> Level:
    found: Level = request.param
    if (reason := obstacles()[found]) is not None:
        pytest.skip(f"{found}: {reason}")
    return found


@pytest.fixture(scope="module")
def child(level: Level) -> Iterator[WarmChild]:
    """As a measurer's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPWRIGHT_TOKEN", SECRET)
        made = WarmChild([ATTACKS], level=level)
        made.start()
        yield made
        made.close()


@pytest.fixture(scope="module")
def builder(level: Level) -> Iterator[WarmChild]:
    """A child that may start programs."""
    made = WarmChild([ATTACKS], level=level, programs=True)
    yield made
    made.close()


@pytest.fixture(scope="module")
def of_a_gpu(level: Level) -> Iterator[WarmChild]:
    """A measurer's child on a machine with a GPU, for which a device that all have stands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workers.walls.enclosure.device_nodes", lambda: ["/dev/full"])
        made = WarmChild([ATTACKS], level=level, devices=True)
    yield made
    made.close()


@pytest.fixture(scope="module")
def of_a_board(level: Level) -> Iterator[WarmChild]:
    """A child that speaks to a board."""
    made = WarmChild([ATTACKS], level=level, network=True)
    yield made
    made.close()


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text(SECRET)
    return str(path)


def tried(child: WarmChild, name: str, *arguments: Any) -> str:
    return str(child.call(f"{ATTACKS}:attack", {"name": name, "arguments": list(arguments)}, 30))


@pytest.mark.parametrize("attack", ["read", "write", "append", "chmod", "truncate", "unlink"])
def test_a_file_of_the_service_is_out_of_reach(child: WarmChild, builder: WarmChild, secret: str, attack: str) -> None:
    for one in (child, builder):
        assert tried(one, attack, secret) in REFUSED
    assert Path(secret).read_text() == SECRET
    assert os.stat(secret).st_mode & 0o777 != 0o777


@pytest.mark.parametrize(
    "path",
    [
        str(CHECKOUT / "workers/child/program.py"),
        sys.executable,
        os.__file__,
        str(host_lock.made_directory() / "host.lock"),
        "/usr/bin/env",
    ],
)
def test_what_can_be_read_cannot_be_changed(child: WarmChild, path: str) -> None:
    before = Path(path).stat()
    assert tried(child, "read", path) == "done"
    for attack in ("append", "chmod", "chmod an open file", "date an open file", "truncate", "unlink"):
        # The last: bubblewrap's mounts are read-only.
        assert tried(child, attack, path) in (*REFUSED, "OSError")
    after = Path(path).stat()
    assert (after.st_size, after.st_mode, after.st_mtime) == (before.st_size, before.st_mode, before.st_mtime)


@pytest.mark.parametrize("path", ["/root", "/home", str(CHECKOUT), str(CHECKOUT / "docker-compose.yml"), "/etc/passwd"])
def test_nothing_else_of_the_machine_can_be_read(child: WarmChild, path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"there is no {path} on this machine to keep anybody from")
    answer = tried(child, "list" if Path(path).is_dir() else "read", path)
    if answer == "done":  # the folder exists as the way to what is bound, with nothing else in it
        shown = child.call(f"{ATTACKS}:listing", {"path": path}, 30)
        assert set(shown) < {entry.name for entry in Path(path).iterdir()}
        assert "docker-compose.yml" not in shown
    else:
        assert answer in REFUSED


def test_the_environment_of_the_parents_is_out_of_reach(child: WarmChild) -> None:
    assert SECRET in os.environ["LOOPWRIGHT_TOKEN"]
    for pid in (1, os.getpid(), os.getppid()):
        assert SECRET not in child.call(f"{ATTACKS}:text_of", {"path": f"/proc/{pid}/environ"}, 30)
    assert SECRET not in str(child.call(f"{ATTACKS}:own_environment", {}, 30))
    others = child.call(f"{ATTACKS}:command_lines", {}, 30)
    assert not any("pytest" in line for line in others)


def test_sockets_of_the_host_are_not_listed(child: WarmChild, builder: WarmChild) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = f":{server.getsockname()[1]:04X} "
        assert port in Path("/proc/net/tcp").read_text()
        for one, path in itertools.product((child, builder), ("/proc/net/tcp", "/proc/self/net/tcp")):
            assert port not in one.call(f"{ATTACKS}:text_of", {"path": path}, 30)


def test_there_is_no_network(child: WarmChild, builder: WarmChild, tmp_path: Path) -> None:
    by_name = str(tmp_path / "socket")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as named:
        named.bind(by_name)
        named.listen()
        for one in (child, builder):
            assert tried(one, "connect", *server.getsockname()) == "PermissionError"
            assert tried(one, "connect by name", by_name) == "PermissionError"


def test_cuda_can_start_where_there_are_gpus(child: WarmChild, of_a_gpu: WarmChild) -> None:
    assert tried(of_a_gpu, "start CUDA") == "done"
    assert tried(child, "start CUDA") == "PermissionError"


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (socket.AF_UNIX, socket.SOCK_STREAM),
        (socket.AF_UNIX, socket.SOCK_DGRAM),
        (socket.AF_INET, socket.SOCK_STREAM),
        (socket.AF_INET, socket.SOCK_SEQPACKET),
        (socket.AF_NETLINK, socket.SOCK_RAW),
    ],
)
def test_a_gpu_opens_no_other_socket(of_a_gpu: WarmChild, family: int, kind: int) -> None:
    assert tried(of_a_gpu, "socket", family, kind) == "PermissionError"


def test_nobody_is_reached_by_the_socket_of_a_gpu(of_a_gpu: WarmChild, tmp_path: Path) -> None:
    name = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as named:
        named.bind(name)
        named.listen()
        assert tried(of_a_gpu, "connect in sequence", name) == "PermissionError"
    assert tried(of_a_gpu, "accept") == "PermissionError"


def test_a_child_that_drives_a_board_connects_by_tcp_and_in_no_other_way(of_a_board: WarmChild, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as board:
        assert tried(of_a_board, "connect", *board.getsockname()) == "done"
    families = (socket.AF_UNIX, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_VSOCK)
    for family, kind in [*((each, socket.SOCK_STREAM) for each in families), (socket.AF_INET, socket.SOCK_DGRAM)]:
        assert tried(of_a_board, "socket", family, kind) == "PermissionError"
    assert tried(of_a_board, "accept") == "PermissionError"


def test_files_and_processes_stay_out_of_reach_beside_a_board(of_a_board: WarmChild, secret: str) -> None:
    for attack in ("read", "write", "unlink"):
        assert tried(of_a_board, attack, secret) in REFUSED
    assert tried(of_a_board, "fork") == "PermissionError"


def test_files_stay_out_of_reach_beside_a_gpu(of_a_gpu: WarmChild, secret: str) -> None:
    for attack in ("read", "write", "append", "chmod", "unlink"):
        assert tried(of_a_gpu, attack, secret) in REFUSED
    assert tried(of_a_gpu, "write", f"/proc/{os.getpid()}/comm") in REFUSED
    assert tried(of_a_gpu, "write", "/proc/sys/kernel/hostname") in (*REFUSED, "OSError")


@pytest.mark.parametrize("attack", ["fork", "program"])
def test_only_a_builder_starts_processes(child: WarmChild, builder: WarmChild, attack: str) -> None:
    assert tried(child, attack) == "PermissionError"
    assert tried(builder, attack) == "done"


def test_threads_may_be_started(child: WarmChild) -> None:
    assert tried(child, "thread") == "done"


@pytest.mark.parametrize(
    "attack",
    ["signal the parent", "limits of the parent", "namespace", "cores of the parent", "class of the parent"],
)
def test_other_processes_are_out_of_reach(child: WarmChild, attack: str) -> None:
    assert tried(child, attack) == "PermissionError"


@pytest.mark.parametrize("attack", ["signal", "trace", "cores", "class"])
def test_processes_outside_are_out_of_reach(child: WarmChild, attack: str) -> None:
    assert tried(child, attack, os.getpid()) in ("PermissionError", "ProcessLookupError")


def test_later_requests_are_scheduled_as_the_first(child: WarmChild, builder: WarmChild) -> None:
    for one in (child, builder):
        before = one.call(f"{ATTACKS}:scheduling", {}, 30)
        for attack in ("cores", "class"):
            assert tried(one, attack, 0) == "PermissionError"
            assert tried(one, f"{attack} of the parent") == "PermissionError"
        assert one.call(f"{ATTACKS}:scheduling", {}, 30) == before


def test_no_right_is_left(child: WarmChild) -> None:
    status = child.call(f"{ATTACKS}:rights", {}, 30)
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def test_nothing_is_left_for_the_next_request(child: WarmChild) -> None:
    folders = ["..", "/tmp", "/dev/shm", "/var/tmp", str(CHECKOUT), str(host_lock.directory())]
    for _ in range(2):
        assert child.call(f"{ATTACKS}:leave", {"folders": folders}, 30) == []


def test_a_full_disk_is_the_programs_own(child: WarmChild, level: Level) -> None:
    if level is not Level.NAMESPACES:
        pytest.skip("at this level files are limited in size, not in number")
    for _ in range(2):
        assert child.call(f"{ATTACKS}:fill", {"count": 9, "size": 2**27}, 60) == "No space left on device"


def test_the_next_request_comes_soon_after_one_that_was_stopped(child: WarmChild) -> None:
    with pytest.raises(ChildTimeout):
        child.call(f"{ATTACKS}:stop", {}, 0.5)
    started = time.monotonic()
    assert tried(child, "thread") == "done"
    assert time.monotonic() - started < 10


def test_without_walls_nothing_is_promised(secret: str) -> None:
    """So that the tests above are known to test the walls."""
    child = WarmChild([ATTACKS], level=Level.NONE)
    try:
        assert tried(child, "read", secret) == "done"
        assert tried(child, "fork") == "done"
        assert tried(child, "signal", os.getpid()) == "done"
    finally:
        child.close()


def test_the_strongest_walls_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def able(*names: Level) -> None:
        reasons = {name: None if name in names else "of a reason" for name in (Level.NAMESPACES, Level.LANDLOCK)}
        monkeypatch.setattr(levels, "obstacles", lambda: reasons)

    able(Level.NAMESPACES, Level.LANDLOCK)
    assert choose(Policy.REQUIRE) is Level.NAMESPACES
    assert choose(Policy.OFF) is Level.NONE
    able(Level.LANDLOCK)
    assert choose(Policy.REQUIRE) is choose(Policy.PREFER) is Level.LANDLOCK
    able()
    assert choose(Policy.PREFER) is Level.NONE
    with pytest.raises(NoWalls, match="LOOPWRIGHT_SANDBOX=prefer"):
        choose(Policy.REQUIRE)
