"""Routes whose JSON is parsed, validated and written in threads, so that the event loop is not blocked."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from inspect import iscoroutinefunction
from typing import Any

import anyio.to_thread
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from db.access.visibility import Viewer
from service.api.answers import Keeping, Read, keeping
from service.context import Context, context_of
from service.identity.visitor import Visitor, authorised

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class _ParsedRequest(Request):
    """A request whose JSON is the endpoint's model already, which FastAPI takes as it is, or None if it is no such."""

    def __init__(self, request: Request, body: bytes, model: BaseModel | None) -> None:
        super().__init__(request.scope, request.receive)
        self._received = body
        self._model = model

    async def body(self) -> bytes:
        return self._received

    async def json(self) -> BaseModel | None:
        return self._model


class ParsedRoute(APIRoute):
    """A route of a feature's router, in place of FastAPI's own, which parses and writes on the event loop."""

    def get_route_handler(self) -> Handler:
        if self.methods == {"GET"} and self.dependant.call is not None and not iscoroutinefunction(self.endpoint):
            self.dependant.call = _written(self.dependant.call)
        handle = super().get_route_handler()
        if (how := keeping(self.endpoint)) is not None:
            return _kept(handle, how)
        if self.body_field is None:
            return handle
        model = self.body_field.field_info.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel), f"{self.path} takes a body that is no model"

        async def parsed(request: Request) -> Response:
            body = await request.body()
            if not body:
                return await handle(request)  # which answers what it should be
            content_type = request.headers.get("content-type", "")
            found: BaseModel | list[dict[str, Any]]
            if "json" in content_type.lower():
                found = await anyio.to_thread.run_sync(_parse, model, body, limiter=context_of(request).parsers)
            else:
                wrong = f"its Content-Type is {content_type or 'missing'}; send JSON as application/json"
                found = [{"type": "content_type", "loc": ("body",), "msg": wrong}]
            if isinstance(found, BaseModel):
                return await handle(_ParsedRequest(request, body, found))
            try:
                # Whether the caller may ask at all is said first.
                return await handle(_ParsedRequest(request, body, None))
            except RequestValidationError as error:
                others = [each for each in error.errors() if each["loc"][0] != "body"]
                raise RequestValidationError([*others, *found]) from None

        return parsed


def _kept(handle: Handler, how: Keeping) -> Handler:
    """Return a handler that answers as before where it can."""

    async def answer(request: Request) -> Response:
        visitor: Visitor = request.state.visitor
        await authorised(request, visitor)
        context: Context = request.app.state.context

        async def make(viewer: Viewer | None) -> Response:
            request.state.viewer = viewer
            return await handle(request)

        url = f"{request.scope['path']}?{request.scope['query_string'].decode('latin-1')}"
        part = how.part({**request.query_params, **request.path_params})
        read = Read(url, visitor.viewer, request.headers.get("if-none-match"), part)
        return await context.answers.give(context.database, read, how.seconds, make)

    return answer


def _written(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Return the endpoint with the model that it returns written as JSON, in the thread that it runs in."""

    @functools.wraps(endpoint)
    def write(**values: Any) -> Any:
        answer = endpoint(**values)
        if not isinstance(answer, BaseModel):
            return answer
        return Response(answer.model_dump_json(by_alias=True), media_type="application/json")

    return write


def _parse(model: type[BaseModel], body: bytes) -> BaseModel | list[dict[str, Any]]:
    """Return the model, or what is wrong with it as FastAPI has it."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)
        return [{**each, "loc": ("body", *each["loc"])} for each in wrong]
