"""A connection to a board, from a child: upload and load programs, and distinguish a crash from a lost board."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator

import tvm
from tvm import rpc

from loopwright.codegen.kinds import FailureKind, Stage
from tuner.types import Failure
from workers.board_messages import Link
from workers.error_text import for_users, raised
from workers.messages import Artifact, ArtifactFormat

_REQUESTS = 3
"""To a tracker: it may still offer a server that has meanwhile taken another key."""
_TIMEOUT = "RPCSessionTimeoutError"
"""What the server writes when it ends a session that has lasted too long."""


class LostBoard(Exception):
    """The board does not answer, or its connection broke; the message says how."""


class BoardSession:
    """An open connection. Uploaded files are removed at the end, if the board still answers."""

    def __init__(self, session: rpc.RPCSession) -> None:
        self.rpc = session
        self.device = session.cpu()
        self._uploaded: list[str] = []

    def load(self, artifact: Artifact) -> tvm.runtime.Module:
        """Upload an artifact and return the module, which runs on the board."""
        if artifact.format is not ArtifactFormat.SHARED_LIBRARY:
            raise RuntimeError(f"an RPC device loads shared libraries, and the builder has made {artifact.format!r}")
        name = f"loopwright-{len(self._uploaded)}.so"
        self._uploaded.append(name)
        self.rpc.upload(bytearray(base64.b64decode(artifact.code)), name)
        return self.rpc.load_module(name)

    def answers(self) -> bool:
        """Return whether the board's server still answers on this connection."""
        try:
            self.threads()
        except Exception:  # TVM raises RPCError, RuntimeError and others for a broken connection
            return False
        return True

    def threads(self) -> int:
        """Return the number of threads that run a parallel loop on the board."""
        return int(self.rpc.get_function("runtime.NumThreads")())

    def failure(self, error: Exception, stage: Stage) -> Failure:
        """Return the failure of what raised ``error``: the program's if the board still answers, else the board's."""
        if _TIMEOUT in str(error):
            return Failure(stage, FailureKind.TIMEOUT, "the device's server ended the session: it took too long")
        if self.answers():
            return Failure(stage, FailureKind.CRASH, raised(type(error).__name__, str(error)))
        return Failure(stage, FailureKind.DEVICE_LOST, f"the connection to the device broke: {for_users(str(error))}")

    def clean_up(self) -> None:
        """Remove what was uploaded. The server removes its folder when the session ends, unless it is killed."""
        for name in self._uploaded:
            with contextlib.suppress(Exception):
                self.rpc.remove(name)


@contextlib.contextmanager
def connected(link: Link) -> Iterator[BoardSession]:
    """Connect to a board for a while. Raises LostBoard if it does not answer, or is none of TVM's servers."""
    try:
        if link.is_tracker:
            tracker = rpc.connect_tracker(link.host, link.port)
            connection = tracker.request(link.key, session_timeout=link.session_seconds, max_retry=_REQUESTS)
        else:
            connection = rpc.connect(link.host, link.port, link.key, session_timeout=link.session_seconds)
    except Exception as error:  # TVM raises RPCError, RuntimeError, OSError and others
        raise LostBoard(f"{link.host}:{link.port} does not answer: {for_users(str(error))}") from error
    session = BoardSession(connection)
    try:
        yield session
    finally:
        session.clean_up()
