"""The token of the Ray cluster. Ray reads its variables once, so that this file is used before Ray is imported."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from workers.host.errors import CannotJoin


def show(file: Path | None) -> None:
    """Make this process and its children use the token in ``file``; None: the token of Ray's own variables.

    Raises CannotJoin if the file has none.
    """
    if file is None:
        return
    try:
        if not file.read_text().strip():
            raise CannotJoin(f"the file {file} is empty; it should have the Ray cluster's token")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotJoin(f"the token cannot be read from {file}: {error}") from None
    with contextlib.suppress(KeyError):
        del os.environ["RAY_AUTH_TOKEN"]  # Ray would take it first
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(file.resolve()))


def refusal(address: str, file: Path | None) -> str:
    """Return the message for a missing or wrong token."""
    if file is None:
        return f"{address} asks for a token, and Ray's variables have none or a wrong one; give --token-file FILE"
    return f"{address} refuses the token of {file}; take the token that the head was started with"
