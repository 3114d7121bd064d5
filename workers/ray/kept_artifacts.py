"""Artifacts of the fastest measured programs: a closing race need not build them again."""

from __future__ import annotations

from workers.messages import Artifact

LIMIT = 32
"""Artifacts that are kept of each module: more than a race has programs (`SearchConfig.contenders`)."""


class KeptArtifacts:
    """Thread-unsafe store by module and trace; None is the trace of the baseline."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str | None, tuple[float, Artifact]]] = {}

    def add(self, module_json: str, trace_json: str | None, seconds: float, artifact: Artifact) -> None:
        """Keep an artifact with its latency; drop the slowest of the module if there are more than `LIMIT`.

        The baseline is in every race: it is kept however slow it is.
        """
        kept = self._kept.setdefault(module_json, {})
        kept[trace_json] = (0.0 if trace_json is None else seconds, artifact)
        if len(kept) > LIMIT:
            del kept[max(kept, key=lambda trace: kept[trace][0])]

    def take(self, module_json: str) -> dict[str | None, Artifact]:
        """Return the artifacts of a module by trace, and drop them."""
        return {trace: artifact for trace, (_, artifact) in self._kept.pop(module_json, {}).items()}
