"""A model of the wire with its JSON."""

from __future__ import annotations

import functools
from typing import Generic, TypeVar

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)


class Written(Generic[Model]):
    """A model that does not change, whose JSON is written at most once."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @functools.cached_property
    def json(self) -> str:
        return self.model.model_dump_json(by_alias=True)
