"""Assembly of scheduled programs: built on demand in the sandbox, the latest kept."""

from __future__ import annotations

import threading
from collections import OrderedDict

from loopwright.schemas import Assembly
from service.sandbox import Sandbox

_KEPT_CHARACTERS = 32 * 2**20


class AssemblyCache:
    """Thread-safe. Two requests for the same at once may both build it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str | None, str], Assembly] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def get(self, sandbox: Sandbox, module_json: str, trace_json: str | None, target_json: str) -> Assembly:
        """Raises ProblemError where the program does not build within the sandbox's limits."""
        key = (module_json, trace_json, target_json)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        built = Assembly.model_validate(
            sandbox.call(
                "workers.assembly:assembly", module_json=module_json, trace_json=trace_json, target_json=target_json
            )
        )
        with self._lock:
            if key not in self._kept:
                self._kept[key] = built
                self._characters += len(built.text)
            while self._characters > _KEPT_CHARACTERS:
                _, oldest = self._kept.popitem(last=False)
                self._characters -= len(oldest.text)
        return built
