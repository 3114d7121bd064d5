"""Packs in an OCI registry, by the API of the OCI Distribution Specification 1.1.

A pack is an artefact: a manifest with one layer, the file. Of the API, HEAD, POST, PUT and GET of blobs and PUT and GET
of manifests are used, and the exchange of a password for a token that registries ask for.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.request import parse_http_list, parse_keqv_list

import httpx

from loopwright.errors import CouldNotReach, InvalidPack
from loopwright.packs.archive import MAX_BYTES
from loopwright.packs.manifest import PackManifest
from loopwright.session.config import Login

ARTEFACT = "application/vnd.loopwright.pack.v1"
LAYER = "application/vnd.loopwright.pack.v1.tar"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_EMPTY = "application/vnd.oci.empty.v1+json"
_MANIFEST_BYTES = 2**20
_DEFAULT_TAG = "latest"
_HOST = r"[A-Za-z0-9.-]+(?::\d+)?|\[[0-9A-Fa-f:]+\](?::\d+)?"
_REPOSITORY = r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
_REFERENCE = re.compile(rf"({_HOST})/({_REPOSITORY})(?::(\w[\w.-]{{0,127}})|@(sha256:[0-9a-f]{{64}}))?")


@dataclass(frozen=True, slots=True)
class Reference:
    """A tag or a digest in a repository of a registry; ``host`` may have a port."""

    host: str
    repository: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Return ``HOST/REPOSITORY``, with ``:TAG`` or ``@sha256:DIGEST`` behind it. Raise ValueError."""
        found = _REFERENCE.fullmatch(text)
        if found is None:
            # A password may be in it, so it is not repeated.
            raise ValueError("a pack in a registry is named oci://HOST/REPOSITORY:TAG, or with @sha256:DIGEST")
        host, repository, tag, digest = found.groups()
        return cls(host, repository, digest or tag or _DEFAULT_TAG)

    @property
    def url(self) -> str:
        """The address of the repository. Registries on this machine are spoken to without encryption."""
        host = httpx.URL(f"http://{self.host}").host
        return f"{'http' if is_loopback(host) else 'https'}://{self.host}/v2/{self.repository}"

    @property
    def is_digest(self) -> bool:
        return self.name.startswith("sha256:")

    def at(self, digest: str) -> str:
        """Return how `pull` names what has a digest in the repository."""
        return f"oci://{self.host}/{self.repository}@{digest}"


class Auth(httpx.Auth):
    """Answers what a registry asks for: the password itself, or a token that another server gives for it."""

    def __init__(self, reference: Reference, login: Login | None) -> None:
        self._host = httpx.URL(reference.url).netloc
        self._basic = None if login is None else httpx.BasicAuth(*login)
        self._token: str | None = None

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if request.url.netloc != self._host:
            yield request  # where an upload goes on elsewhere, its address is enough
            return
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token}"
        response = yield request
        scheme, _, fields = response.headers.get("WWW-Authenticate", "").partition(" ")
        if response.status_code != httpx.codes.UNAUTHORIZED:
            return
        if scheme.lower() == "basic" and self._basic is not None:
            yield from self._basic.auth_flow(request)
        elif scheme.lower() == "bearer":
            response = yield self._asked(parse_keqv_list(parse_http_list(fields)))
            response.read()
            if not response.is_success:
                return
            answer = response.json()
            self._token = str(answer.get("token") or answer.get("access_token"))
            request.headers["Authorization"] = f"Bearer {self._token}"
            yield request

    def _asked(self, fields: dict[str, str]) -> httpx.Request:
        """Return the request for a token. Raise ValueError if the password would be sent without encryption."""
        realm = httpx.URL(fields.get("realm", ""))
        if realm.scheme != "https" and not is_loopback(realm.host):
            raise ValueError(f"the registry asks for a token of {realm.host or 'nobody'} without encryption")
        query: dict[str, str] = {name: fields[name] for name in ("service", "scope") if name in fields}
        request = httpx.Request("GET", realm, params=query)
        return request if self._basic is None else next(self._basic.auth_flow(request))


def push(web: httpx.Client, reference: Reference, path: Path, pack: PackManifest) -> str:
    """Store a pack under a tag, and return its name with the digest. Raise CouldNotReach for a refusal."""
    if reference.is_digest:
        raise ValueError("a pack is pushed to a tag: oci://HOST/REPOSITORY:TAG")
    data = path.read_bytes()
    layer = {"mediaType": LAYER, "digest": _put_blob(web, reference, data), "size": len(data)}
    config = {"mediaType": _EMPTY, "digest": _put_blob(web, reference, b"{}"), "size": 2}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": ARTEFACT,
        "config": config,
        "layers": [{**layer, "annotations": {"org.opencontainers.image.title": path.name}}],
        "annotations": {
            "org.opencontainers.image.created": pack.created_at.isoformat(),
            "org.opencontainers.image.authors": pack.creator,
            "org.opencontainers.image.licenses": pack.licence,
            "org.opencontainers.image.title": pack.name,
        },
    }
    text = json.dumps(manifest).encode()
    headers = {"Content-Type": MANIFEST}
    checked(web.put(f"{reference.url}/manifests/{reference.name}", content=text, headers=headers))
    return reference.at(_digest(text))


def pull(web: httpx.Client, reference: Reference, file: IO[bytes]) -> None:
    """Write a pack to a file.

    Raises:
        InvalidPack: what has this name is no pack, or is not what its digest says.
        CouldNotReach: the registry refused.
    """
    response = checked(web.get(f"{reference.url}/manifests/{reference.name}", headers={"Accept": MANIFEST}))
    text = response.content
    if len(text) > _MANIFEST_BYTES or (reference.is_digest and _digest(text) != reference.name):
        raise InvalidPack(f"what {reference.host} has of {reference.repository} is not what its digest says")
    digest, size = _layer(text, reference)
    with web.stream("GET", f"{reference.url}/blobs/{digest}", follow_redirects=True) as stream:
        found = save(stream, file, size)
    if found != digest:
        raise InvalidPack(f"what {reference.host} sent is not what {digest} says")


def save(response: httpx.Response, file: IO[bytes], most: int) -> str:
    """Write the body of an answer, of ``most`` bytes at most, to a file, and return its digest."""
    if not response.is_success:
        response.read()
        checked(response)
    digest, size = hashlib.sha256(), 0
    for part in response.iter_bytes():
        size += len(part)
        if size > most:
            raise InvalidPack(f"what {response.url.host} sent has more than {most} bytes")
        digest.update(part)
        file.write(part)
    return f"sha256:{digest.hexdigest()}"


def checked(response: httpx.Response) -> httpx.Response:
    """Return an answer that grants what was asked for. Raise CouldNotReach for a refusal, with what it says."""
    if response.is_success:
        return response
    url = response.url.copy_with(query=None, fragment=None)  # a query may have a token
    advice = "; log in with 'docker login', or set LOOPWRIGHT_PACKS_USER and LOOPWRIGHT_PACKS_PASSWORD"
    raise CouldNotReach(
        f"{url} answered {response.status_code} {response.reason_phrase}"
        f"{advice if response.status_code in (401, 403) else ''}"
    )


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _layer(text: bytes, reference: Reference) -> tuple[str, int]:
    """Return the digest and the size of the one layer of a manifest. Raise InvalidPack for another artefact."""
    try:
        layers: list[dict[str, Any]] = json.loads(text)["layers"]
        [layer] = [each for each in layers if each["mediaType"] == LAYER]
        digest, size = layer["digest"], layer["size"]
        if re.fullmatch("sha256:[0-9a-f]{64}", digest) and isinstance(size, int) and 0 <= size <= MAX_BYTES:
            return digest, size
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise InvalidPack(f"{reference.repository} has no pack under {reference.name}, but something else")


def _put_blob(web: httpx.Client, reference: Reference, data: bytes) -> str:
    """Store bytes, unless the repository has them, and return their digest."""
    digest = _digest(data)
    if web.head(f"{reference.url}/blobs/{digest}").is_success:
        return digest
    begun = checked(web.post(f"{reference.url}/blobs/uploads/", content=b""))
    place = begun.url.join(begun.headers.get("Location", ""))
    headers = {"Content-Type": "application/octet-stream"}
    checked(web.put(place.copy_merge_params({"digest": digest}), content=data, headers=headers))
    return digest


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
