"""Where packs are kept: a directory, a web server or an OCI registry. Only clients fetch packs, no service does."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx

from loopwright.errors import CouldNotReach, InvalidPack
from loopwright.packs import registry
from loopwright.packs.archive import MAX_BYTES, Pack, read
from loopwright.packs.signing import Keys
from loopwright.session import config
from loopwright.session.config import Login

TIMEOUT = httpx.Timeout(30.0, read=120.0, write=120.0)
"""Seconds; for reading and writing, between two parts. Not tuned."""


def push(path: Path, place: str) -> str:
    """Copy a pack to a place, and return what `pull` finds it by.

    Args:
        path: the pack, whose digests and signatures are checked before.
        place: ``oci://HOST/REPOSITORY:TAG``; an ``http://`` or ``https://`` URL, to which the file is PUT; or a
            directory, which is made if it does not exist.

    Raises:
        InvalidPack: the file is none.
        CouldNotReach: there was no answer, or a refusal.
        ValueError: the place cannot be used.
    """
    pack = read(path)
    scheme, _, rest = place.partition("://")
    if scheme == "oci":
        reference = registry.Reference.parse(rest)
        with _web(reference.url, registry.Auth(reference, _login(reference.url))) as web:
            return registry.push(web, reference, path, pack.manifest)
    if scheme in ("http", "https"):
        with _web(place, _login(place)) as web:
            registry.checked(web.put(place, content=path.read_bytes()))
        return place
    folder = Path(place)
    folder.mkdir(parents=True, exist_ok=True)
    with _replacing(folder / path.name) as made:
        made.write_bytes(path.read_bytes())
    return str(folder / path.name)


def pull(place: str, path: Path, keys: Keys | None = None) -> Pack:
    """Copy a pack from a place to a file, and return the pack. What is no pack leaves no file.

    Args:
        place: as `push` returns it: also a path, ``oci://HOST/REPOSITORY@sha256:DIGEST``, or any URL.
        path: the file.
        keys: public keys, one of which must have signed it; None for a pack of any key.

    Raises:
        InvalidPack: it is none, or none that ``keys`` has signed.
        CouldNotReach: there was no answer, or a refusal.
        ValueError: the place cannot be used.
        FileNotFoundError: there is no such file.
    """
    with _replacing(path) as made:
        with made.open("wb") as file:
            _fetch(place, file)
        try:
            return read(made, keys)
        except InvalidPack as error:
            raise InvalidPack(str(error).replace(str(made), place, 1)) from error


def _fetch(place: str, file: IO[bytes]) -> None:
    scheme, _, rest = place.partition("://")
    if scheme == "oci":
        reference = registry.Reference.parse(rest)
        with _web(reference.url, registry.Auth(reference, _login(reference.url))) as web:
            registry.pull(web, reference, file)
    elif scheme in ("http", "https"):
        with _web(place, _login(place)) as web, web.stream("GET", place, follow_redirects=True) as response:
            registry.save(response, file, MAX_BYTES)
    else:
        with Path(place).open("rb") as source:
            shutil.copyfileobj(source, file)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Return a new file, which takes the place of another one at the end, unless there was an error."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(descriptor)
    try:
        yield Path(name)
        os.chmod(name, 0o644)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def _web(url: str, auth: httpx.Auth | Login | None) -> Iterator[httpx.Client]:
    """Return a client for a URL. Errors of the connection become CouldNotReach, without what is secret in a URL."""
    try:
        with httpx.Client(timeout=TIMEOUT, auth=auth) as web:
            yield web
    except httpx.InvalidURL as error:
        raise ValueError(f"this is no URL: {error}") from None
    except httpx.HTTPError as error:
        host = httpx.URL(url).host
        raise CouldNotReach(f"could not reach {host}: {str(error) or type(error).__name__}") from error


def _login(url: str) -> Login | None:
    """Return the user and password for a URL. Raise ValueError if they would be sent to where others can read them."""
    parsed = httpx.URL(url)
    if parsed.userinfo:
        raise ValueError(
            f"the address of {parsed.host} has a user or a password, which end up in logs; set LOOPWRIGHT_PACKS_USER "
            "and LOOPWRIGHT_PACKS_PASSWORD instead, or use 'docker login'"
        )
    login = config.packs_login(parsed.netloc.decode())
    if login is not None and parsed.scheme == "http" and not registry.is_loopback(parsed.host):
        raise ValueError(f"a password for {parsed.host} would be sent without encryption; use https")
    return login
