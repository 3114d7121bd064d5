"""System calls that a process behind walls may make, by a filter of seccomp; all others fail with EPERM.

Allowed is what tensor programs, Python, LLVM, compilers and CUDA's driver are known to use: memory, threads, the own
clock, and files, of which Landlock and namespaces decide. So a call that a later kernel brings is refused until someone
has looked at it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import termios
from collections.abc import Callable
from types import ModuleType

_MEMORY = (
    *("brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "mincore", "msync", "membarrier", "memfd_create"),
    *("mlock", "mlock2", "munlock", "mlockall", "munlockall", "pkey_alloc", "pkey_free", "pkey_mprotect"),
)
_FILES = (
    *("open", "openat", "openat2", "creat", "close", "close_range", "dup", "dup2", "dup3", "umask"),
    *("read", "readv", "pread64", "preadv", "preadv2", "write", "writev", "pwrite64", "pwritev", "pwritev2"),
    *("lseek", "ftruncate", "fallocate", "fsync", "fdatasync", "flock", "fadvise64", "readahead"),
    *("sendfile", "copy_file_range", "splice", "tee"),
    *("access", "faccessat", "faccessat2", "stat", "lstat", "fstat", "newfstatat", "statx", "statfs", "fstatfs"),
    *("getcwd", "chdir", "fchdir", "getdents", "getdents64", "readlink", "readlinkat"),
    *("mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat"),
    *("symlink", "symlinkat"),
    *("pipe", "pipe2", "eventfd", "eventfd2", "poll", "ppoll", "select", "pselect6"),
    *("epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2"),
)
_ITSELF = (
    *("exit", "exit_group", "wait4", "waitid", "restart_syscall", "arch_prctl", "set_tid_address", "set_robust_list"),
    *("rseq", "futex", "futex_wait", "futex_wake", "futex_waitv", "futex_requeue", "setrlimit"),
    *("getpid", "gettid", "getppid", "getpgrp", "getpgid", "getsid", "getuid", "geteuid", "getgid", "getegid"),
    *("getresuid", "getresgid", "getgroups", "capget", "getrlimit", "getrusage", "times", "getcpu", "getpriority"),
    *("sched_yield", "sched_getaffinity", "sched_getscheduler", "sched_getparam", "sched_getattr"),
    *("sched_get_priority_max", "sched_get_priority_min", "get_mempolicy"),
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend"),
    *("sigaltstack", "pause", "uname", "sysinfo", "getrandom"),
)
_TIME = (
    *("time", "gettimeofday", "clock_gettime", "clock_getres", "nanosleep", "clock_nanosleep"),
    *("alarm", "getitimer", "setitimer", "timer_create", "timer_settime", "timer_gettime", "timer_getoverrun"),
    *("timer_delete", "timerfd_create", "timerfd_settime", "timerfd_gettime"),
)
_ALLOWED = (*_MEMORY, *_FILES, *_ITSELF, *_TIME)
_OF_PROGRAMS = ("fork", "vfork", "execve", "execveat", "kill", "tgkill", "setpgid", "setsid")
"""They signal their own processes. Those outside are kept from it by namespaces, and by Landlock since Linux 6.12."""
_OF_SOCKETS = (
    *("sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg", "recvmmsg", "shutdown"),
    *("getsockname", "getpeername", "getsockopt", "setsockopt"),
)
"""Of sockets that are open: without others, there are none."""
_OF_CUDA = ("bind", "listen", "socketpair", "ioctl", "set_mempolicy", "mbind")
"""CUDA opens a socket with a name (``cuda-uvmfd-…``), and does not start without it. Nobody can connect to it: `accept`
stays refused, as do `connect` and all other sockets. It drives its devices by requests of its own to ``ioctl``."""
_CUDA_SOCKET = (socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
_TYPE = 0xF
"""The type of a socket, without flags."""
_CONTROLS = (
    *(fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC, fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL, fcntl.F_SETFL),
    *(fcntl.F_GETLK, fcntl.F_SETLK, fcntl.F_SETLKW, fcntl.F_OFD_GETLK, fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLKW),
    *(fcntl.F_ADD_SEALS, fcntl.F_GET_SEALS, fcntl.F_GETPIPE_SZ, fcntl.F_SETPIPE_SZ),
)
"""Of open files. F_SETOWN and F_SETSIG are not among them: they have the kernel signal another process."""
_DEVICE_CONTROLS = (
    *(termios.TCGETS, termios.TIOCGWINSZ, termios.FIONREAD),
    *(termios.FIONBIO, termios.FIOCLEX, termios.FIONCLEX),
)
"""Nothing that types into a terminal, or sets an owner."""
_PROCESS_CONTROLS = (
    *(1, 2),  # the signal at the end of the parent
    *(3, 4),  # whether others may trace it
    *(15, 16),  # names of threads
    *(21, 23, 38, 39),  # what it may do, and to lose it
    *(41, 42),  # large pages
    0x53564D41,  # names of memory
)
"""The first argument of ``prctl``."""
_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020000
"""CLONE_NEW*: user, pid, network, IPC, UTS, cgroup and mount namespaces."""


def prepare(*, programs: bool, gpus: bool, network: bool = False) -> Callable[[], None]:
    """Return a function that refuses all other calls in its thread and all that this starts, for good.

    With ``programs``, processes may be started; with ``gpus``, CUDA can be used; with ``network``, TCP connections
    be made. It is called once, in a fork: to make the filter in each would cost milliseconds.
    """
    seccomp = _seccomp()
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    # Without it, kernels before 5.16 slow down every load and store of a filtered process.
    rules.set_attr(seccomp.Attr.CTL_SSB, 1)

    def allow(name: str, *arguments: object) -> None:
        number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
        if number >= 0:  # others have, or had, calls of further names
            rules.add_rule(seccomp.ALLOW, number, *arguments)

    def allow_first(name: str, position: int, values: tuple[int, ...]) -> None:
        for value in values:
            allow(name, seccomp.Arg(position, seccomp.EQ, value))

    for name in allowed(programs=programs, gpus=gpus, network=network):
        allow(name)
    allow_first("fcntl", 1, _CONTROLS)
    allow_first("prctl", 0, _PROCESS_CONTROLS)
    if gpus:
        allow("socket", *(seccomp.Arg(place, seccomp.EQ, value) for place, value in enumerate(_CUDA_SOCKET)))
    else:
        allow_first("ioctl", 1, _DEVICE_CONTROLS)
    if network:
        # No other family or type: so no name is looked up, and nobody on this machine is asked by a name.
        for family in (socket.AF_INET, socket.AF_INET6):
            stream = seccomp.Arg(1, seccomp.MASKED_EQ, _TYPE, socket.SOCK_STREAM)
            allow("socket", seccomp.Arg(0, seccomp.EQ, family), stream)
    # Its own limits.
    allow_first("prlimit64", 0, (0,))
    # The C library falls back to clone, whose flags a filter can read.
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    needed = 0 if programs else _CLONE_THREAD
    allow("clone", seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_NAMESPACES | needed, needed))

    def refuse() -> None:
        if not programs:
            # It may signal itself alone, as abort does.
            allow_first("kill", 0, (os.getpid(),))
            allow_first("tgkill", 0, (os.getpid(),))
        rules.load()

    return refuse


def allowed(*, programs: bool, gpus: bool, network: bool = False) -> tuple[str, ...]:
    """Return the calls that are allowed with any arguments. See `prepare`, which allows others by their arguments."""
    names: tuple[str, ...] = _ALLOWED
    if programs:
        names += _OF_PROGRAMS
    if gpus or network:
        names += _OF_SOCKETS
    if gpus:
        names += _OF_CUDA
    return (*names, "connect") if network else names


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
