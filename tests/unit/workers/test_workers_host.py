"""A host that wants to join: its options, and what it is told if it cannot."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from loopwright.codegen.kinds import SandboxLevel
from tuner.types import DeviceClass
from workers.host import checks, head, token
from workers.host.errors import CannotJoin, HeadAway
from workers.host.head import Head
from workers.host.options import HostOptions, read, split
from workers.messages import DetectedDevice
from workers.ray import fleet_versions
from workers.ray.names import builder_name, host_name, measurer_name, node_of, own_labels
from workers.walls.levels import Level, NoWalls, Policy

OWN = Head("2.60.0", "3.11.7", fleet_versions.own(), ("other",))


def options(*words: str) -> HostOptions:
    return read(["--address", "head", *words])


@pytest.fixture
def listener() -> Iterator[str]:
    """The address of something that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def same(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's versions, whatever they are, are those of `OWN`."""
    monkeypatch.setattr("workers.host.checks.ray.__version__", OWN.ray)
    monkeypatch.setattr("workers.host.checks.platform.python_version", lambda: OWN.python)


def test_options_have_defaults() -> None:
    found = options("--name", "a")
    assert (found.address, found.token_file, found.name, found.labels) == ("head:6379", None, "a", {})
    assert (found.walls, found.drain_seconds, found.reconnect_seconds) == (Policy.REQUIRE, 60.0, 600.0)
    assert options("--label", "rack=a", "--label", "tier=b").labels == {"rack": "a", "tier": "b"}


@pytest.mark.parametrize(
    ("text", "parts"), [("head:7", ("head", 7)), ("10.0.0.1", ("10.0.0.1", 6379)), ("[::1]:8", ("::1", 8))]
)
def test_addresses_have_a_port(text: str, parts: tuple[str, int]) -> None:
    assert split(read(["--address", text]).address) == parts


@pytest.mark.parametrize(
    "words",
    [
        ["--address", "http://head:1"],
        ["--address", "head:70000"],
        ["--name", "a/b"],
        ["--label", "rack"],
        ["--drain-seconds", "-1"],
        ["--drain-seconds", "inf"],
    ],
)
def test_bad_options_are_wrong_use(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        options(*words)
    assert ended.value.code == 2
    assert words[1] in capsys.readouterr().err


def test_nothing_at_the_address_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    done = subprocess.run(
        [sys.executable, "-m", "workers.host", "--address", f"127.0.0.1:{port}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert f"nothing answers at 127.0.0.1:{port} (Connection refused)" in line


def test_an_unknown_host_is_said() -> None:
    with pytest.raises(HeadAway, match=r"nobody\.invalid"):
        checks.check_head(replace(options(), address="nobody.invalid:6379"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ray": "2.0.0"}, r"has Ray 2\.0\.0 on Python 3\.11\.7, and this machine Ray 2\.60\.0"),
        ({"python": "3.12.1"}, r"on Python 3\.12\.1"),
        ({"announced": "TVM 0.1"}, r"the service has TVM 0\.1, and this machine TVM"),
        ({"hosts": ("a",)}, "a host named a is in the fleet already"),
    ],
)
@pytest.mark.usefixtures("same")
def test_who_does_not_fit_is_told_why(
    listener: str, changes: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head, "ask", lambda _: replace(OWN, **changes))  # type: ignore[arg-type]
    with pytest.raises(CannotJoin, match=reason):
        checks.check_head(replace(options("--name", "a"), address=listener))


@pytest.mark.parametrize("announced", [None, fleet_versions.own()])
@pytest.mark.usefixtures("same")
def test_who_fits_may_join(listener: str, announced: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[HostOptions] = []

    def ask(given: HostOptions) -> Head:
        asked.append(given)
        return replace(OWN, announced=announced)

    monkeypatch.setattr(head, "ask", ask)
    checks.check_head(replace(options("--name", "a"), address=listener))
    assert [given.address for given in asked] == [listener]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's variables are unset, and restored after the test."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("environment")
def test_the_token_of_a_file_is_shown_to_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text("secret")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "another")
    token.show(file)
    shown = {name: value for name, value in os.environ.items() if name.startswith("RAY_AUTH")}
    assert shown == {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(file)}
    assert "refuses the token of" in token.refusal("head:1", file)


@pytest.mark.usefixtures("environment")
def test_a_token_that_is_missing_is_asked_for(tmp_path: Path) -> None:
    token.show(None)
    assert "give --token-file" in token.refusal("head:1", None)
    with pytest.raises(CannotJoin, match="cannot be read"):
        token.show(tmp_path / "missing")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(CannotJoin, match="is empty"):
        token.show(tmp_path / "empty")


def test_without_walls_the_option_to_join_anyway_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: Policy) -> Level:
        raise NoWalls("no walls; or trust all users and set LOOPWRIGHT_SANDBOX=prefer")

    monkeypatch.setattr(checks, "choose", none)
    with pytest.raises(CannotJoin, match="give --sandbox prefer"):
        checks.offering(options())


def test_what_is_offered_is_said() -> None:
    machine = DeviceClass('{"kind": "llvm"}', "Model", (), 4, 8, "1")
    offer = checks.Offering([DetectedDevice("cpu", machine)], SandboxLevel.LANDLOCK)
    said = checks.lines(options("--name", "a", "--label", "rack=b"), offer)
    assert said == [
        f"offers a/cpu: Model, 8 threads, device class {machine.id}",
        "builders: 4; sandbox: landlock",
        "labels: rack=b",
    ]


def test_a_nodes_actors_have_its_name_in_theirs() -> None:
    node = "0123456789abcdef0123"
    names = {builder_name(node), measurer_name(node, "cuda:0"), measurer_name(node, "cpu")}
    assert {node_of(name) for name in names} == {"0123456789ab"}


def test_a_node_may_have_a_name_and_labels_of_its_own() -> None:
    labels = {"ray.io/node-id": "1", "loopwright/process": "2", "rack": "a"}
    assert own_labels({"Labels": labels}) == {"rack": "a"}
    assert host_name({"Labels": labels, "NodeManagerHostname": "box"}) == "box"
    assert host_name({"Labels": labels | {"loopwright/host": "named"}, "NodeManagerHostname": "box"}) == "named"
