"""The OpenAPI document of the API, made once for all tests of a process."""

from __future__ import annotations

import functools
from typing import Any

from service.app import create_app
from service.settings import Settings


@functools.cache
def openapi_document() -> dict[str, Any]:
    return create_app(Settings()).openapi()
