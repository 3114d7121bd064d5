"""What ``scripts/demo`` prints, without its service."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rich.console import Console

from loopwright import Client
from service import demo


class PlayedSupervisor:
    url = "http://127.0.0.1:8080"

    def __init__(self, _: object, say: object) -> None: ...

    def handle_signals(self) -> None: ...

    @contextmanager
    def running(self) -> Iterator[None]:
        yield

    def login_url(self) -> str:
        return f"{self.url}/#code=once"

    def wait(self) -> None: ...


@pytest.mark.parametrize(("words", "stays"), [((), True), (("--exit",), False)])
def test_the_address_is_printed_before_the_model_is_tuned(
    words: tuple[str, ...], stays: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = []

    def tune(client: Client, console: Console) -> bool:
        before.append(capsys.readouterr().out)
        return True

    monkeypatch.setattr(demo, "Supervisor", PlayedSupervisor)
    monkeypatch.setattr(demo, "ensure_token", lambda _: "secret")
    monkeypatch.setattr(demo, "tune", tune)
    monkeypatch.setattr(sys, "argv", ["demo", *words])
    with pytest.raises(SystemExit) as ended:
        demo.main()
    assert ended.value.code == 0
    assert "/#code=once" in before[0]
    assert ("Serving until Ctrl-C" in capsys.readouterr().out) is stays
