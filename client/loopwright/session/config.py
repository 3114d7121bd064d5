"""Which service to talk to, and as whom: the only file of the SDK that reads the environment.

Each of URL and token comes from the first of: the argument, ``LOOPWRIGHT_URL`` / ``LOOPWRIGHT_TOKEN``, the login
saved by ``loopwright login``, a service running on this machine, the default URL.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A service's URL without a trailing slash, and the token for it (None: send none)."""

    url: str
    token: str | None


Login = tuple[str, str]
"""A user and a password."""


def environment(endpoint: Endpoint) -> dict[str, str]:
    """Return the environment variables with which another process uses the same service as the same user."""
    return {"LOOPWRIGHT_URL": endpoint.url, **({"LOOPWRIGHT_TOKEN": endpoint.token} if endpoint.token else {})}


def login_file() -> Path:
    """Return the path of the login, ``$XDG_CONFIG_HOME/loopwright/login.json``, which only its owner may read."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "loopwright" / "login.json"


def service_file() -> Path:
    """Return the file of a running service on this machine: ``{"url": …, "token_file": …}``."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "loopwright" / "service.json"


def data_folder() -> Path:
    """Return the folder of this user's service on this machine: database, token, logs and who runs it."""
    chosen = os.environ.get("LOOPWRIGHT_DATA_DIR")
    if chosen:
        return Path(chosen).expanduser().resolve()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "loopwright"


def functions_folder() -> Path:
    """Return the folder of compiled functions, ``$XDG_CACHE_HOME/loopwright/functions``, which may be removed."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "loopwright" / "functions"


def service_port() -> int | None:
    """Return the port that the environment chooses for this machine's service. Raises ValueError: it is no port."""
    chosen = os.environ.get("LOOPWRIGHT_PORT")
    if not chosen:
        return None
    if not chosen.isdecimal() or not 0 < int(chosen) < 65536:
        raise ValueError(f"LOOPWRIGHT_PORT is {chosen!r}, which is no port; give a number from 1 to 65535")
    return int(chosen)


def names_a_service(url: str | None = None) -> bool:
    """Return whether the argument, the environment or a saved login say which service to use."""
    return bool(url or os.environ.get("LOOPWRIGHT_URL") or _saved_login())


def resolve(url: str | None = None, token: str | None = None) -> Endpoint:
    """Return the address and the token. A saved token is sent only to the URL that it was saved with.

    Raises:
        ValueError: the URL does not begin with ``http://`` or ``https://``, its host or port is wrong, or the token has
            a character that none has.
    """
    saved = [endpoint for endpoint in (_saved_login(), local_service()) if endpoint is not None]
    chosen = url or os.environ.get("LOOPWRIGHT_URL") or (saved[0].url if saved else DEFAULT_URL)
    chosen = chosen.rstrip("/")
    if not chosen.lower().startswith(("http://", "https://")):
        raise ValueError(
            f"the URL {chosen!r} does not begin with http:// or https://; write http://{chosen.rpartition('://')[2]}"
        )
    if not _has_host(chosen):
        raise ValueError(f"the URL {chosen!r} has no valid host and port; write http://HOST:PORT")
    token = (token or os.environ.get("LOOPWRIGHT_TOKEN") or "").strip()
    if not (token.isascii() and token.isprintable()):
        raise ValueError("the token has a character that no token has; copy it again")
    if not token:
        token = next((endpoint.token for endpoint in saved if endpoint.url == chosen and endpoint.token), None)
    return Endpoint(chosen, token)


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0 and url.isprintable() and " " not in url
    except ValueError:  # the port is no number up to 65535, or a bracket is open
        return False


def save_login(url: str, token: str) -> Path:
    """Save a login with mode 0600, replacing the one before; returns the file."""
    path = login_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # mkstemp creates with 0600: the token is never readable by others, not for a moment.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"url": url.rstrip("/"), "token": token}, file)
    os.replace(temporary, path)
    return path


def packs_login(host: str) -> Login | None:
    """Return the user and password for a host that keeps packs; None if there are none.

    They are ``LOOPWRIGHT_PACKS_USER`` and ``LOOPWRIGHT_PACKS_PASSWORD``, for whichever host, else what ``docker login``
    has saved for this host in its file. Docker's credential helpers, which are programs, are not asked.
    """
    user, password = os.environ.get("LOOPWRIGHT_PACKS_USER"), os.environ.get("LOOPWRIGHT_PACKS_PASSWORD")
    if user and password:
        return user, password
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    logins = _read_json(folder / "config.json").get("auths")
    saved = logins.get(host) if isinstance(logins, dict) else None
    if not isinstance(saved, dict) or not isinstance(saved.get("auth"), str):
        return None
    try:
        user, _, password = base64.b64decode(saved["auth"]).decode().partition(":")
    except ValueError:
        return None
    return (user, password) if user else None


def _saved_login() -> Endpoint | None:
    fields = _read_json(login_file())
    return Endpoint(fields["url"].rstrip("/"), fields.get("token")) if "url" in fields else None


def local_service() -> Endpoint | None:
    """Return the service that runs on this machine, or has run when the machine went down; None without one."""
    fields = _read_json(service_file())
    if "url" not in fields:
        return None
    try:
        token = Path(fields["token_file"]).read_text(encoding="utf-8").strip() or None
    except (KeyError, OSError):
        token = None  # the service runs without tokens, or as another user whose token is not ours to read
    return Endpoint(fields["url"].rstrip("/"), token)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
