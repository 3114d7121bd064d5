"""The bests that a service knows, whose certificates are verified before anything is compiled with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright import schemas
from loopwright.jobs.targets import on_wire
from loopwright.session.transport import Transport, body, parse

_API = "/api/v1"


@dataclass(frozen=True, slots=True)
class KnownRecords:
    """Which records a service would have compiled with."""

    target: Mapping[str, Any]
    """What the target is on the fleet."""
    records: Mapping[str, str]
    """The record of each workload that is known, by its hash."""

    @classmethod
    def of(cls, answer: schemas.LookupAnswer) -> KnownRecords:
        """Return the records of an answer."""
        imported = {each.workload_hash: each.record_id for each in answer.imported}
        return cls(answer.target, imported | {hit.workload_hash: hit.best.record_id for hit in answer.hits})


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

    def records(self, hashes: Sequence[str], target: Any, *, is_instant: bool) -> KnownRecords:
        """Return the records that `on_target` would answer with, asked once.

        Raises:
            CouldNotReach, ServiceError: as `Transport.request`.
        """
        from loopwright.session.light import NoUsableAnswer

        wanted = {"functions": list(hashes), "target": on_wire(target), "imported": is_instant}
        try:
            answer = self.transport.ask(f"{_API}/workloads/lookup/records", wanted)
            return KnownRecords(answer["target"], answer["records"])
        except (NoUsableAnswer, KeyError, TypeError):  # such as a service that has no such path yet
            return KnownRecords.of(self.on_target(target, is_repeated=False, is_instant=is_instant)(list(hashes)))

    def _verify(self, bests: Sequence[schemas.Best]) -> None:
        from loopwright.results import evidence

        certificates = [best.certificate for best in bests]
        documents = [signed for each in certificates for signed in (each.signed, each.verdict)]
        signed_with = {signed.key_id for signed in documents if signed is not None}
        if not signed_with.issubset(self._keys):
            self._keys = evidence.by_id(self.keys())
        for best in bests:
            evidence.check_best(best, self._keys)
