"""Builders and measurers that tests put in place of those of `workers.ray.actors`."""

from __future__ import annotations

import math
import zlib

from tuner.codec import Json
from workers.ray.actors import Builder, Measurer
from workers.walls.levels import Policy


class RecordingBuilder(Builder):
    """Remembers what it built, in order."""

    def __init__(self) -> None:
        super().__init__(cuda=False, walls=Policy.PREFER, places=1)
        self._requests: list[Json] = []

    def build(self, request: Json, caller: str, seconds: float = math.inf) -> Json:
        self._requests.append(request)
        return super().build(request, caller, seconds)

    def take_traces(self) -> list[str | None]:
        """Return the traces built since the last call."""
        requests, self._requests = self._requests, []
        return [request["trace_json"] for request in requests]

    def targets_of_references(self) -> list[str]:
        """Return the targets of the references built since the last call of `take_traces`."""
        return [request["target_json"] for request in self._requests if request["exact_math"]]


class MiscompilingBuilder(Builder):
    """Builds another program in place of the candidate with the trace ``trace_json``."""

    def __init__(self, trace_json: str, other_module_json: str) -> None:
        super().__init__(cuda=False, walls=Policy.PREFER, places=1)
        self._trace_json = trace_json
        self._other_module_json = other_module_json

    def build(self, request: Json, caller: str, seconds: float = math.inf) -> Json:
        if request["trace_json"] == self._trace_json:
            request = request | {"module_json": self._other_module_json, "trace_json": None}
        return super().build(request, caller, seconds)


def is_killer(trace_json: str | None) -> bool:
    """Return whether a `KillingBuilder` replaces the candidate: a third of all, by their traces."""
    return trace_json is not None and zlib.crc32(trace_json.encode()) % 3 == 0


class KillingBuilder(RecordingBuilder):
    """Builds the program of another module, which kills its process, in place of every candidate that `is_killer`."""

    def __init__(self, killing_module_json: str) -> None:
        super().__init__()
        self._killing_module_json = killing_module_json

    def build(self, request: Json, caller: str, seconds: float = math.inf) -> Json:
        if not is_killer(request["trace_json"]):
            return super().build(request, caller, seconds)
        self._requests.append(request)
        killing = request | {"module_json": self._killing_module_json, "trace_json": None}
        return Builder.build(self, killing, caller, seconds)


class BatchRecorder(Measurer):
    """Remembers the keys of each batch that it measured, in order."""

    def __init__(self) -> None:
        super().__init__("cpu", 1, Policy.PREFER)
        self._sent: list[list[str]] = []

    def measure(self, batch: Json, caller: str) -> list[Json]:
        self._sent.append([candidate["key"] for candidate in batch["candidates"]])
        return super().measure(batch, caller)

    def sent(self) -> list[list[str]]:
        return self._sent
