"""What the wheel of the service consists of: the rooms of the checkout, the dashboard, the documentation.

The rooms lie in a folder of the package, so that no environment gets packages called ``service`` or ``db``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

CHECKOUT = Path(__file__).resolve().parents[2]
ROOMS = ("db", "service", "tuner", "workers")
BUILT = ("service/dashboard/dist", "service/documentation/site")
"""What ``scripts/setup`` builds."""
GROUPS = ("service", "workers")
"""The groups of the project's dependencies that the locks of the service are made from, without what builds it."""


class Metadata(MetadataHookInterface):
    """Takes from the project what holds for both wheels."""

    def update(self, metadata: dict[str, Any]) -> None:
        whole = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
        dependencies = [each for group in GROUPS for each in whole["dependency-groups"][group]]
        metadata["dependencies"] = [f"loopwright=={metadata['version']}", *dependencies]
        metadata["requires-python"] = whole["project"]["requires-python"]
        metadata["classifiers"] = whole["project"]["classifiers"]


class Build(BuildHookInterface[Any]):
    """Adds the rooms to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name each file and where it goes. Raises FileNotFoundError: dashboard or documentation are not built."""
        for folder in BUILT:
            if not (CHECKOUT / folder / "index.html").is_file():
                raise FileNotFoundError(f"{folder} is not built; scripts/setup builds it")
        for file in files():
            name = file.relative_to(CHECKOUT).as_posix()
            build_data["force_include"][str(file)] = f"loopwright_service/rooms/{name}"


def files() -> Iterator[Path]:
    """Yield the files of the rooms; of the dashboard and the documentation, only what is built."""
    for room in ROOMS:
        for file in (CHECKOUT / room).rglob("*"):
            name = file.relative_to(CHECKOUT).as_posix()
            is_source = not name.startswith(("service/dashboard/", "service/documentation/"))
            is_made = file.name.startswith(".") or "__pycache__" in file.parts
            if file.is_file() and not is_made and (is_source or name.startswith(BUILT)):
                yield file
