"""The bests that a service knows, whose certificates are verified before anything is compiled with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from loopwright import schemas
from loopwright.jobs.targets import on_wire
from loopwright.session.transport import Transport, body, parse

_API = "/api/v1"


class ServiceBests:
    """The bests of a service, and the public keys that its certificates are verified with. Thread-safe."""

    def __init__(self, transport: Transport) -> None:
        """Use this connection; nothing is asked yet."""
        self.transport = transport
        self._keys: dict[str, schemas.SigningKey] = {}

    def keys(self) -> Iterator[schemas.SigningKey]:
        """Yield the public keys of the service, the newest first."""
        return self.transport.pages(schemas.SigningKey, f"{_API}/keys")

    def on_target(
        self, target: Any, device_class: str | None = None, *, is_repeated: bool = True, is_instant: bool = False
    ) -> Callable[[list[str]], schemas.LookupAnswer]:
        """Return a function that asks the service for the bests of workload hashes on a target.

        Without an answer, it asks again unless ``is_repeated`` is false, or the answer is to be instant: then it also
        asks for what was imported. It raises WrongCertificate if the service has not signed the certificate of a best
        for this schedule.
        """

        def ask(hashes: list[str]) -> schemas.LookupAnswer:
            wanted = body(
                schemas.Lookup,
                functions=list(hashes),
                target=on_wire(target),
                device_class=device_class,
                imported=is_instant,
            )
            path, is_repeatable = f"{_API}/workloads/lookup", is_repeated and not is_instant
            response = self.transport.request("POST", path, json=wanted, repeatable=is_repeatable)
            answer = parse(schemas.LookupAnswer, response)
            self._verify([hit.best for hit in answer.hits])
            return answer

        return ask

    def _verify(self, bests: Sequence[schemas.Best]) -> None:
        from loopwright.results import evidence

        certificates = [best.certificate for best in bests]
        documents = [signed for each in certificates for signed in (each.signed, each.verdict)]
        signed_with = {signed.key_id for signed in documents if signed is not None}
        if not signed_with.issubset(self._keys):
            self._keys = evidence.by_id(self.keys())
        for best in bests:
            evidence.check_best(best, self._keys)
