"""Which service, and as whom."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from loopwright.session import config
from loopwright.session.config import DEFAULT_URL, Endpoint, resolve


def run_service(tmp_path: Path, url: str = "http://127.0.0.1:9000", token: str | None = "local") -> None:
    token_file = tmp_path / "token"
    if token:
        token_file.write_text(f"{token}\n")
    config.service_file().parent.mkdir(parents=True)
    config.service_file().write_text(json.dumps({"url": url, "token_file": str(token_file)}))


def test_the_default_is_this_machine_without_a_token() -> None:
    assert resolve() == Endpoint(DEFAULT_URL, None)


def test_a_service_on_this_machine_is_found(tmp_path: Path) -> None:
    run_service(tmp_path)
    assert resolve() == Endpoint("http://127.0.0.1:9000", "local")


def test_a_service_whose_token_cannot_be_read_is_still_found(tmp_path: Path) -> None:
    run_service(tmp_path, token=None)
    assert resolve() == Endpoint("http://127.0.0.1:9000", None)


def test_each_source_goes_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_service(tmp_path)
    config.save_login("http://saved/", "saved")
    assert resolve() == Endpoint("http://saved", "saved")
    monkeypatch.setenv("LOOPWRIGHT_URL", "http://environment/")
    monkeypatch.setenv("LOOPWRIGHT_TOKEN", "environment")
    assert resolve() == Endpoint("http://environment", "environment")
    assert resolve("http://argument", "argument") == Endpoint("http://argument", "argument")


def test_a_saved_token_goes_to_its_own_service_only(tmp_path: Path) -> None:
    run_service(tmp_path)
    config.save_login("http://saved", "saved")
    assert resolve("http://elsewhere").token is None
    assert resolve("http://saved/").token == "saved"
    assert resolve("http://127.0.0.1:9000").token == "local"


@pytest.mark.parametrize("url", ["127.0.0.1:8080/", "ftp://127.0.0.1:8080"])
def test_a_url_without_http_is_refused_with_the_right_one(url: str) -> None:
    with pytest.raises(ValueError, match=r" http://127\.0\.0\.1:8080$"):
        resolve(url)


def test_a_login_is_readable_by_its_owner_only() -> None:
    config.save_login("http://saved", "first")
    path = config.save_login("http://saved", "second")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert resolve().token == "second"
    assert list(path.parent.iterdir()) == [path]


def test_xdg_directories_are_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "d"))
    assert config.login_file() == tmp_path / "c/loopwright/login.json"
    assert config.service_file() == tmp_path / "s/loopwright/service.json"
    assert config.data_folder() == tmp_path / "d/loopwright"
    monkeypatch.setenv("LOOPWRIGHT_DATA_DIR", str(tmp_path / "chosen"))
    assert config.data_folder() == tmp_path / "chosen"


def test_a_service_is_named_by_its_user_and_not_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_service(tmp_path)
    assert not config.names_a_service()
    assert config.names_a_service("http://argument")
    config.save_login("http://saved", "saved")
    assert config.names_a_service()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_spoilt_file_counts_as_none(text: str) -> None:
    config.login_file().parent.mkdir(parents=True)
    config.login_file().write_text(text)
    assert resolve() == Endpoint(DEFAULT_URL, None)
