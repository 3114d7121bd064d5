"""System calls that a process behind walls is refused, by a filter of seccomp.

What is refused is what tensor programs never do and what a way out would need: sockets, other processes, mounts,
namespaces, keys, tracing, the kernel's rarely used parts. Refused calls fail with EPERM.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from types import ModuleType

_REFUSED = (
    # Sockets and other ways to talk to processes outside.
    *("socket", "bind", "connect", "listen", "accept", "accept4", "io_uring_setup", "io_uring_register"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl", "shmget", "shmat", "shmctl"),
    *("mq_open", "mq_unlink"),
    # Other processes.
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_open", "pidfd_getfd"),
    *("pidfd_send_signal", "kcmp", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "setpriority", "ioprio_set"),
    *("move_pages", "migrate_pages"),
    # Cores and scheduling classes, its own too: later forks inherit those of the warm child. Nobody needs them, since
    # Loopwright has TVM bind no thread to a core (`loopwright.codegen.host.threads`).
    *("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"),
    # What Landlock does not guard of files that can be opened: their owners, modes, times and attributes.
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "truncate"),
    *("utime", "utimes", "utimensat", "futimesat", "setxattr", "fsetxattr", "lsetxattr", "setxattrat"),
    *("removexattr", "fremovexattr", "lremovexattr", "removexattrat"),
    *("mknod", "mknodat", "name_to_handle_at", "open_by_handle_at", "fanotify_init"),
    # Namespaces and mounts.
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsmount"),
    *("fsconfig", "fspick", "mount_setattr", "quotactl", "quotactl_fd"),
    # Users and rights.
    *("setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups"),
    *("capset", "keyctl", "add_key", "request_key"),
    # The kernel and the machine.
    *("bpf", "perf_event_open", "userfaultfd", "init_module", "finit_module", "delete_module", "kexec_load"),
    *("kexec_file_load", "reboot", "swapon", "swapoff", "syslog", "acct", "iopl", "ioperm", "modify_ldt"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "vhangup"),
    *("lookup_dcookie", "nfsservctl", "uselib", "_sysctl", "vm86", "vm86old"),
)
_OF_CUDA = ("socket", "bind", "listen")
"""CUDA opens a socket with a name (``cuda-uvmfd-…``), and does not start without it. Nobody can connect to it: `accept`
stays refused, as do `connect` and all other sockets."""
_CUDA_SOCKET = (socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
_OF_NETWORK = ("socket", "connect")
"""To connect to a board: by TCP alone, so that no name is looked up, and nobody on this machine is asked by a name."""
_FAMILIES = 46
"""There are fewer families of sockets."""
_NO_STREAMS = (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_RDM, socket.SOCK_SEQPACKET, 10)
"""Types of sockets that are no streams; 10 is SOCK_PACKET."""
_TYPE = 0xF
"""The type of a socket, without flags."""
_OF_PROGRAMS = ("fork", "vfork", "execve", "execveat")
_UNKNOWN = -1
"""What libseccomp answers for a call that it does not know."""
_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020000
"""CLONE_NEW*: user, pid, network, IPC, UTS, cgroup and mount namespaces."""


def prepare(*, programs: bool, gpus: bool, network: bool = False) -> Callable[[], None]:
    """Return a function that refuses the calls in its thread and all that this starts, for good.

    With ``programs``, processes may be started; with ``gpus``, CUDA can be used; with ``network``, TCP connections
    be made. It is called once, in a fork: to make the filter in each would cost milliseconds.
    """
    seccomp = _seccomp()
    refused = seccomp.ERRNO(errno.EPERM)
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    # Without it, kernels before 5.16 slow down every load and store of a filtered process.
    rules.set_attr(seccomp.Attr.CTL_SSB, 1)
    for name in _REFUSED if programs else (*_REFUSED, *_OF_PROGRAMS):
        if (gpus and name in _OF_CUDA) or (network and name in _OF_NETWORK):
            continue
        number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
        if number != _UNKNOWN:
            rules.add_rule(refused, number)
    if gpus:
        for position, value in enumerate(_CUDA_SOCKET):
            rules.add_rule(refused, "socket", seccomp.Arg(position, seccomp.NE, value))
    if network:
        for family in set(range(_FAMILIES)) - {socket.AF_INET, socket.AF_INET6}:
            rules.add_rule(refused, "socket", seccomp.Arg(0, seccomp.EQ, family))
        rules.add_rule(refused, "socket", seccomp.Arg(0, seccomp.GE, _FAMILIES))
        for kind in _NO_STREAMS:
            rules.add_rule(refused, "socket", seccomp.Arg(1, seccomp.MASKED_EQ, _TYPE, kind))
    # The C library falls back to clone, whose flags a filter can read.
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    for bit in (1 << number for number in range(32) if _CLONE_NAMESPACES >> number & 1):
        rules.add_rule(refused, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, bit, bit))
    if not programs:
        rules.add_rule(refused, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD, 0))
    # Limits may be asked for, and set for the process itself alone.
    rules.add_rule(refused, "prlimit64", seccomp.Arg(0, seccomp.NE, 0), seccomp.Arg(2, seccomp.NE, 0))

    def refuse() -> None:
        if not programs:
            # It may signal itself alone, as abort does; with programs, its children, too.
            for name in ("kill", "tgkill"):
                rules.add_rule(refused, name, seccomp.Arg(0, seccomp.NE, os.getpid()))
        rules.load()

    return refuse


def obstacle() -> str | None:
    """Return why seccomp does not work here, or None."""
    try:
        _seccomp()
    except (ImportError, RuntimeError) as error:
        return f"seccomp: {error}"
    return None


def _seccomp() -> ModuleType:
    import pyseccomp  # fails where libseccomp is not installed

    module: ModuleType = pyseccomp
    return module
