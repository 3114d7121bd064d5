"""All system calls that there are, and many that there are not, from a fork behind walls of each level."""

from __future__ import annotations

import errno
import os
import platform
from collections.abc import Iterator

import pyseccomp
import pytest

from tests.security import attacks
from workers.child.warm_child import WarmChild
from workers.walls.levels import Level, obstacles
from workers.walls.syscalls import allowed

ATTACKS = attacks.__name__
NUMBERS = 1024
"""The kernel's own end below 500."""
PASSED_BY_THE_KERNEL = {335, 336}
"""uretprobe and uprobe, which no filter sees: anywhere but in the kernel's own trampoline they end the process."""
KINDS = {
    "measurer": {"programs": False, "gpus": False},
    "builder": {"programs": True, "gpus": False},
    "board": {"programs": False, "gpus": False, "network": True},
    "gpu": {"programs": False, "gpus": True},
}
BY_ARGUMENTS = {"clone", "fcntl", "ioctl", "kill", "prctl", "prlimit64", "tgkill"}
"""Allowed with some first arguments, which are not those of the attempt."""
FORBIDDEN = {
    *("accept", "accept4", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_send_signal"),
    *("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "setpriority", "ioprio_set"),
    *("chmod", "fchmod", "chown", "utimensat", "setxattr", "mknod", "name_to_handle_at", "inotify_init1", "truncate"),
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "statmount", "listmount"),
    *("setuid", "setresuid", "capset", "keyctl", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup"),
    *("init_module", "kexec_load", "reboot", "syslog", "seccomp", "landlock_restrict_self", "map_shadow_stack"),
    *("shmget", "msgget", "semget", "mq_open", "clock_settime", "settimeofday", "personality", "quotactl"),
}


@pytest.fixture(params=[Level.NAMESPACES, Level.LANDLOCK])
def level(request: pytest.FixtureRequest) -> Level:
    found: Level = request.param
    if (reason := obstacles()[found]) is not None:
        pytest.skip(f"{found}: {reason}")
    return found


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def child(level: Level, kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[WarmChild]:
    monkeypatch.setattr("workers.walls.enclosure.device_nodes", lambda: ["/dev/full"])
    wanted = KINDS[kind]
    made = WarmChild(
        [ATTACKS],
        level=level,
        programs=wanted["programs"],
        devices=wanted["gpus"],
        network=wanted.get("network", False),
    )
    yield made
    made.close()


def number(name: str) -> int:
    return int(pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of the attempts are those of x86-64")
def test_every_other_call_is_refused(child: WarmChild, kind: str) -> None:
    let_through = {number(name) for name in allowed(**KINDS[kind])} | PASSED_BY_THE_KERNEL
    refused = [one for one in range(NUMBERS) if one not in let_through]
    answers = dict(zip(refused, child.call(f"{ATTACKS}:call_all", {"numbers": refused}, 60), strict=True))
    clone3 = answers.pop(number("clone3"))
    assert clone3 == errno.ENOSYS
    assert {one: os.strerror(found) for one, found in answers.items() if found != errno.EPERM} == {}


@pytest.mark.parametrize("wanted", KINDS.values(), ids=KINDS)
def test_what_programs_never_need_is_on_no_list(wanted: dict[str, bool]) -> None:
    assert FORBIDDEN.isdisjoint(allowed(**wanted))
    assert (BY_ARGUMENTS - {"kill", "tgkill", "ioctl"}).isdisjoint(allowed(**wanted))


@pytest.mark.parametrize("kind", ["measurer"], indirect=True)
def test_calls_are_limited_by_their_arguments(child: WarmChild) -> None:
    for name in ("own signals", "own name", "own limits", "own descriptor"):
        assert child.call(f"{ATTACKS}:attack", {"name": name, "arguments": []}, 30) == "done"
    for name in (
        *("owner of a pipe", "signal of a pipe", "type into a terminal", "shared core", "limits of the parent"),
        *("signal the parent", "signal all", "namespace by clone"),
    ):
        assert child.call(f"{ATTACKS}:attack", {"name": name, "arguments": []}, 30) == "PermissionError", name
