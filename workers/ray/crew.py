"""The actors that a loop may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Crew:
    """``builders`` maps names of actors to the builds that each works on at a time, ``measurers`` to their workers.

    ``hosts`` maps those of measurers to the targets of their hosts' processors, as far as they are known.
    """

    builders: Mapping[str, int] = field(default_factory=dict)
    measurers: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)

    def __or__(self, other: Crew) -> Crew:
        return Crew(
            {**self.builders, **other.builders}, {**self.measurers, **other.measurers}, {**self.hosts, **other.hosts}
        )
