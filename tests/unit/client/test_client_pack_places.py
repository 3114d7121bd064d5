"""Packs in directories, on web servers and in OCI registries: a real one, if there is one, and one in a thread."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import logging
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from loopwright import CouldNotReach, InvalidPack
from loopwright.packs import places, registry
from loopwright.packs.archive import read
from loopwright.results import evidence
from tests.support.oci_registry import BASIC, LOGIN, Guard
from tests.support.oci_registry import registry as served
from tests.support.service import free_port
from tests.support.waiting import wait_for
from tests.unit.client.conftest import Command, Made
from tests.unit.client.fake_service import Answer, FakeService, Request

PASSWORD = LOGIN[1]


@pytest.fixture(autouse=True)
def _no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOPWRIGHT_PACKS_USER", "LOOPWRIGHT_PACKS_PASSWORD", "DOCKER_CONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def with_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_PACKS_USER", LOGIN[0])
    monkeypatch.setenv("LOOPWRIGHT_PACKS_PASSWORD", PASSWORD)


@contextlib.contextmanager
def distribution(folder: Path) -> Iterator[str]:
    """Run the registry of the CNCF's project Distribution, as Debian's package has it; yield its host and port."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("there is no docker-registry; Debian's package of that name has it")
    port = free_port()
    settings = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "stored")}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    (folder / "config.yml").write_text(json.dumps(settings))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(folder / "config.yml")], stdout=log, stderr=log)

    def answers() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{port}/v2/", trust_env=False).is_success
        return False

    try:
        wait_for("the registry", answers)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(params=["in a thread", "Distribution"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "Distribution":
        folder = tmp_path / "registry"
        folder.mkdir()
        with distribution(folder) as found:
            yield found
    else:
        with served() as thread:
            yield thread.host


def test_a_pack_goes_through_a_registry(made: Made, host: str, run: Command, tmp_path: Path) -> None:
    place = f"oci://{host}/team/packs:nightly"
    assert run("pack", "pull", place, str(tmp_path / "early.pack")).status == 3
    done = run("pack", "push", str(made.path), place)
    assert done.status == 0, done.err
    by_digest = done.out.strip()
    assert by_digest.startswith(f"oci://{host}/team/packs@sha256:")
    for number, name in enumerate((place, by_digest)):
        pulled = tmp_path / f"{number}.pack"
        done = run("pack", "pull", name, str(pulled), "--keys", str(made.keys))
        assert (done.status, done.out) == (0, f"team: 3 bests written to {pulled}\n"), done.err
        assert pulled.read_bytes() == made.path.read_bytes()
    # Another pack takes the tag, and the digest stays what it was.
    before = made.path.read_bytes()
    assert run("pack", "push", str(made.path), place).out.strip() == by_digest
    assert made.path.read_bytes() == before
    manifest = httpx.get(f"http://{host}/v2/team/packs/manifests/nightly", headers={"Accept": registry.MANIFEST}).json()
    assert manifest["artifactType"] == registry.ARTEFACT
    assert manifest["annotations"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    [layer] = manifest["layers"]
    assert layer["digest"] == f"sha256:{hashlib.sha256(before).hexdigest()}"


@pytest.mark.parametrize("guard", ["basic", "bearer"])
def test_a_registry_gets_a_password_only_where_it_asks_for_it(
    made: Made,
    guard: Guard,
    with_login: None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with served(guard) as thread, caplog.at_level(logging.DEBUG):
        place = places.push(made.path, f"oci://{thread.host}/a/b:c")
        places.pull(place, tmp_path / "pulled.pack")
        sent = [authorization for _, path, authorization in thread.seen if "/token" not in path]
        assert None in sent
        assert (BASIC in sent) == (guard == "basic")
        for token in (*thread.tokens, PASSWORD, BASIC):
            assert token not in caplog.text


def test_blobs_elsewhere_are_fetched_without_the_password(
    made: Made,
    service: FakeService,
    with_login: None,
    tmp_path: Path,
) -> None:
    with served("bearer") as thread:
        place = places.push(made.path, f"oci://{thread.host}/a/b")
        thread.redirects_to = f"{service.url}/store"
        digest = f"sha256:{hashlib.sha256(made.path.read_bytes()).hexdigest()}"
        service.on("GET", f"/store/{digest}", Answer(made.path.read_bytes()))
        service.requests.clear()
        places.pull(place, tmp_path / "pulled.pack")
        [request] = service.requests
        assert "authorization" not in request.headers
        service.on("GET", f"/store/{digest}", Answer(made.path.read_bytes() + b"x"))
        with pytest.raises(InvalidPack, match="more than"):
            places.pull(place, tmp_path / "other.pack")
        service.on("GET", f"/store/{digest}", Answer(b"x" * made.path.stat().st_size))
        with pytest.raises(InvalidPack, match="is not what sha256"):
            places.pull(place, tmp_path / "other.pack")
        assert not (tmp_path / "other.pack").exists()


def test_without_a_password_the_refusal_says_what_to_do(made: Made, tmp_path: Path) -> None:
    for guard in ("basic", "bearer"):
        with served(guard) as thread, pytest.raises(CouldNotReach, match=r"401 .*'docker login'"):
            places.push(made.path, f"oci://{thread.host}/a/b")


def test_the_login_of_docker_is_used_for_its_host_only(
    made: Made,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with served("basic") as thread:
        saved = {"auth": base64.b64encode(":".join(LOGIN).encode()).decode()}
        others: list[Any] = [{"registry.example": saved}, {thread.host: {}}, {thread.host: {"auth": "%"}}, []]
        for auths in others:
            (tmp_path / "config.json").write_text(json.dumps({"auths": auths}))
            with pytest.raises(CouldNotReach):
                places.push(made.path, f"oci://{thread.host}/a/b")
        (tmp_path / "config.json").write_text(json.dumps({"auths": {thread.host: saved}}))
        places.push(made.path, f"oci://{thread.host}/a/b")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda manifest: manifest["layers"].clear(), "something else"),
        (lambda manifest: manifest["layers"].append(manifest["layers"][0]), "something else"),
        (lambda manifest: manifest["layers"][0].update(mediaType="application/x-tar"), "something else"),
        (lambda manifest: manifest["layers"][0].update(digest="../../other"), "something else"),
        (lambda manifest: manifest["layers"][0].update(size=2**40), "something else"),
        (lambda manifest: manifest["layers"][0].update(size="1"), "something else"),
        (lambda manifest: manifest.pop("layers"), "something else"),
    ],
)
def test_what_a_registry_has_may_be_no_pack(made: Made, tmp_path: Path, change: object, error: str) -> None:
    with served() as thread:
        by_digest = places.push(made.path, f"oci://{thread.host}/a/b:c")
        manifest = json.loads(thread.manifests["c"][0])
        assert callable(change)
        change(manifest)
        for name in thread.manifests:
            thread.manifests[name] = json.dumps(manifest).encode(), registry.MANIFEST
        with pytest.raises(InvalidPack, match=error):
            places.pull(f"oci://{thread.host}/a/b:c", tmp_path / "pulled.pack")
        with pytest.raises(InvalidPack, match="not what its digest says"):
            places.pull(by_digest, tmp_path / "pulled.pack")
    assert not list(tmp_path.glob("*pulled*"))


@pytest.mark.parametrize(
    "place",
    ["registry", "host/Upper", "user:pw@host/a", "host/a:b:c", "host/a@sha256:12", "host/../a", "host/a/", "/a", ""],
)
def test_a_name_in_a_registry_has_one_form(made: Made, tmp_path: Path, place: str) -> None:
    with pytest.raises(ValueError, match="is named oci://HOST/REPOSITORY:TAG") as refused:
        places.pull(f"oci://{place}", tmp_path / "pulled.pack")
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("ghcr.io/team/packs", "https://ghcr.io/v2/team/packs"),
        ("localhost:5000/a", "http://localhost:5000/v2/a"),
        ("[::1]:5000/a", "http://[::1]:5000/v2/a"),
        ("localhost.example/a", "https://localhost.example/v2/a"),
        ("10.0.0.1/a", "https://10.0.0.1/v2/a"),
    ],
)
def test_other_machines_are_spoken_to_with_encryption(text: str, url: str) -> None:
    assert registry.Reference.parse(text).url == url


def test_passwords_are_not_sent_in_the_clear(made: Made, tmp_path: Path, with_login: None) -> None:
    with pytest.raises(ValueError, match="use https"):
        places.push(made.path, "http://packs.example/a.pack")
    with pytest.raises(ValueError, match="end up in logs") as refused:
        places.pull(f"https://robot:{PASSWORD}@packs.example/a.pack", tmp_path / "pulled.pack")
    assert PASSWORD not in str(refused.value)


def test_a_pack_goes_through_a_web_server(
    made: Made,
    service: FakeService,
    run: Command,
    tmp_path: Path,
    with_login: None,
) -> None:
    stored: dict[str, bytes] = {}

    def put(request: Request) -> Answer:
        stored["pack"] = request.body
        return Answer(b"", 201)

    service.on("GET", "/there.pack", lambda _: Answer(stored["pack"]))
    service.on("PUT", "/there.pack", put)
    url = f"{service.url}/there.pack"
    assert run("pack", "push", str(made.path), url).out == f"{url}\n"
    assert stored["pack"] == made.path.read_bytes()
    service.on("GET", "/moved.pack", Answer(b"", 302, {"Location": "/there.pack"}))
    for name in ("there", "moved"):
        assert run("pack", "pull", f"{service.url}/{name}.pack", str(tmp_path / "pulled.pack")).status == 0
        assert read(tmp_path / "pulled.pack", evidence.read_keys(made.keys)).is_known
    assert all(request.headers["authorization"] == BASIC for request in service.seen("GET", "/there.pack"))
    service.on("GET", "/there.pack", Answer(b"no pack"))
    before = (tmp_path / "pulled.pack").read_bytes()
    done = run("pack", "pull", f"{service.url}/there.pack?token=secret", str(tmp_path / "pulled.pack"))
    assert done.status == 2
    assert (tmp_path / "pulled.pack").read_bytes() == before
    done = run("pack", "pull", f"{service.url}/none.pack?token=secret", str(tmp_path / "pulled.pack"))
    assert (done.status, "answered 404" in done.err, "secret" in done.err) == (3, True, False)


def test_a_pack_goes_through_a_directory(made: Made, run: Command, tmp_path: Path) -> None:
    done = run("pack", "push", str(made.path), str(tmp_path / "new" / "folder"))
    assert done.out == f"{tmp_path}/new/folder/team.pack\n"
    assert run("pack", "pull", done.out.strip(), str(tmp_path / "pulled.pack")).status == 0
    assert (tmp_path / "pulled.pack").read_bytes() == made.path.read_bytes()
    assert run("pack", "pull", str(tmp_path / "none.pack"), str(tmp_path / "other.pack")).status == 2
    made.path.write_bytes(b"no pack")
    assert run("pack", "push", str(made.path), str(tmp_path / "new" / "folder")).status == 2
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["team.pack"]


def test_nobody_there_is_said(made: Made, tmp_path: Path) -> None:
    for place in ("oci://127.0.0.1:1/a", "http://127.0.0.1:1/a.pack"):
        with pytest.raises(CouldNotReach, match=r"could not reach 127\.0\.0\.1"):
            places.pull(place, tmp_path / "pulled.pack")
    assert list(tmp_path.glob(".pulled*")) == []
