"""Values as JSON and back: the one codec of what crosses processes and of what the database keeps as JSON.

A value is a frozen dataclass, an enum, a tuple, a union of these, or JSON as it is. Its annotations are its schema, and
limits in them hold for what a hostile process answers. Bytes are base64. NaN and the infinities are refused. A field
that is not known here is ignored, and one that is missing has its default: processes may be of different versions.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Annotated, Any, TypeVar, overload

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

Json = dict[str, Any]
T = TypeVar("T")


class Malformed(ValueError):
    """JSON is not that of the expected type; the message names the place and not the content."""


def _from_base64(value: object) -> object:
    return base64.b64decode(value, altchars=b"-_", validate=True) if isinstance(value, str) else value


Base64 = Annotated[bytes, BeforeValidator(_from_base64)]
"""The type of a field with bytes."""


def encode(value: object) -> Any:
    """Return dictionaries, lists, strings, numbers and None only."""
    return to_jsonable_python(value, bytes_mode="base64")


@overload
def decode(kind: type[T], data: Any) -> T: ...


@overload
def decode(kind: object, data: Any) -> Any: ...


def decode(kind: Any, data: Any) -> Any:
    """Return the value of type ``kind`` that `encode` made ``data`` of. Raises Malformed."""
    try:
        return adapter(kind).validate_python((data,))[0]
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise Malformed(f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}") from error


@cache
def adapter(kind: Any) -> TypeAdapter[tuple[Any]]:
    """Return the reader of a type, which takes milliseconds to make; a process that will fork makes it before."""
    return TypeAdapter(tuple[kind], config=ConfigDict(allow_inf_nan=False))
