"""Builders that tests put in place of `workers.actors.Builder`."""

from __future__ import annotations

import math

from workers.actors import Builder
from workers.messages import Json
from workers.walls.levels import Policy


class RecordingBuilder(Builder):
    """Remembers the traces that it built, in order."""

    def __init__(self) -> None:
        super().__init__(cuda=False, walls=Policy.PREFER)
        self._traces: list[str | None] = []

    def build(self, request: Json, caller: str, seconds: float = math.inf) -> Json:
        self._traces.append(request["trace_json"])
        return super().build(request, caller, seconds)

    def take_traces(self) -> list[str | None]:
        """Return the traces built since the last call."""
        traces, self._traces = self._traces, []
        return traces


class MiscompilingBuilder(Builder):
    """Builds another program in place of the candidate with the trace ``trace_json``."""

    def __init__(self, trace_json: str, other_module_json: str) -> None:
        super().__init__(cuda=False, walls=Policy.PREFER)
        self._trace_json = trace_json
        self._other_module_json = other_module_json

    def build(self, request: Json, caller: str, seconds: float = math.inf) -> Json:
        if request["trace_json"] == self._trace_json:
            request = request | {"module_json": self._other_module_json, "trace_json": None}
        return super().build(request, caller, seconds)
