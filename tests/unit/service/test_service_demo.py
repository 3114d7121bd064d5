"""What ``scripts/demo`` prints, without its service."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service import demo


class PlayedSupervisor:
    url = "http://127.0.0.1:8080"

    def __init__(self, _: object) -> None: ...

    def handle_signals(self) -> None: ...

    @contextmanager
    def running(self) -> Iterator[None]:
        yield

    def login_url(self) -> str:
        return f"{self.url}/#code=once"

    def wait(self) -> None: ...


@pytest.mark.parametrize(("words", "stays"), [((), True), (("--exit",), False)])
def test_an_address_is_printed_only_if_the_service_stays(
    words: tuple[str, ...], stays: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "Supervisor", PlayedSupervisor)
    monkeypatch.setattr(demo, "ensure_token", lambda _: "secret")
    monkeypatch.setattr(demo, "tune", lambda client, console: True)
    monkeypatch.setattr(sys, "argv", ["demo", *words])
    with pytest.raises(SystemExit) as ended:
        demo.main()
    assert ended.value.code == 0
    assert ("/#code=once" in capsys.readouterr().out) is stays
