"""A host whose head was away: it joins again at once, if the head does not know it any more."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from loopwright.codegen.kinds import SandboxLevel
from tuner.types import DeviceClass
from workers.host import checks, head, run
from workers.host.errors import HeadAway
from workers.host.head import Head
from workers.host.options import HostOptions, read
from workers.messages import DetectedDevice

MACHINE = DeviceClass('{"kind": "llvm"}', "Model", (), 4, 8, "1")


class PlayedNode:
    """A node that joins at once. When it has joined for the second time, the host is told to leave."""

    made: list[PlayedNode]

    def __init__(self, _: HostOptions) -> None:
        self.made.append(self)
        self.is_running = True

    def await_joined(self, stop: threading.Event) -> None:
        if len(self.made) == 2:
            stop.set()

    def last_words(self) -> str:
        return "it was killed"

    def stop(self) -> None:
        self.is_running = False


@pytest.fixture
def socket_of_head() -> Iterator[socket.socket]:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        yield made


@pytest.mark.parametrize(
    ("hosts", "reason"), [((), "does not know this machine any more"), (("box",), "this machine's node of Ray ended")]
)
def test_a_head_that_was_away_is_asked_whether_it_knows_the_machine(
    socket_of_head: socket.socket, monkeypatch: pytest.MonkeyPatch, hosts: tuple[str, ...], reason: str
) -> None:
    """The head is away, starts, and then says which hosts it has. The node of one that it has goes on until it ends."""
    said: list[str] = []
    answers = iter([None, Head("2", "3", None, hosts)])

    def say(line: str) -> None:
        said.append(line)
        if "does not answer" in line:
            socket_of_head.listen()

    def ask(_: HostOptions) -> Head:
        if (answer := next(answers)) is None:
            raise HeadAway("it is starting")
        PlayedNode.made[0].is_running = False
        return answer

    monkeypatch.setattr(PlayedNode, "made", [], raising=False)
    monkeypatch.setattr(run, "Node", PlayedNode)
    for name in ("_LOOK_SECONDS", "_SILENT_SECONDS", "_FIRST_STEP_SECONDS"):
        monkeypatch.setattr(run, name, 0.0)
    monkeypatch.setattr(head, "ask", ask)
    monkeypatch.setattr(checks, "check_head", lambda _: None)
    offering = checks.Offering([DetectedDevice("cpu", MACHINE)], SandboxLevel.NONE)
    monkeypatch.setattr(checks, "offering", lambda _: offering)
    address = f"127.0.0.1:{socket_of_head.getsockname()[1]}"
    run.Host(read([f"--address={address}", "--name=box", "--drain-seconds=0"]), say).run()
    assert len(PlayedNode.made) == 2
    assert [line for line in said if line.startswith("lost: ") and reason in line]
