"""Records in and out as TVM's JSON pair."""

from __future__ import annotations

from loopwright import schemas
from service.context import Context


def export(ctx: Context, device_class_id: str | None) -> bytes:
    raise NotImplementedError


def import_tar(ctx: Context, body: bytes) -> schemas.ImportReport:
    raise NotImplementedError
