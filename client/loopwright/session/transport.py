"""HTTP to the service: authorization, retries, problems as typed errors, pages, server-sent events.

httpx and Pydantic are imported by the first request.
"""

from __future__ import annotations

import random
import reprlib
import time
from collections.abc import Iterator
from functools import cached_property
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Any, TypeVar

from loopwright import schemas
from loopwright.errors import CouldNotReach, ServiceError, UnexpectedAnswer, from_problem
from loopwright.session.config import Endpoint
from loopwright.session.kept_answers import KeptAnswers
from loopwright.session.server_sent_events import ServerSentEvent, read_events

if TYPE_CHECKING:
    import httpx
    from pydantic import BaseModel

Model = TypeVar("Model", bound="BaseModel")

TIMEOUT = 30.0
"""Seconds, for connecting and for each wait on an answer."""
ATTEMPTS = 5
"""How often a call that is safe to repeat is tried; with the waits between, about four seconds of trouble pass."""
FIRST_DELAY = 0.25
LONGEST_DELAY = 10.0
MOST_PATIENCE = 60.0
"""Seconds that are waited in all for a user's other requests to end. A limit of a day is not waited for."""
DOWNLOAD_SECONDS = 120.0
"""Until a part of a file, which is sent while it is made. A busy service gives up before that."""
PASSING = frozenset({429, 502, 503, 504})
"""Statuses that may be gone on the next try."""
_JITTER = random.Random()
"""Of this module: the user's program may have seeded Python's own generator."""


class Transport:
    """A connection pool to one service. Thread-safe, as httpx's client is."""

    def __init__(self, endpoint: Endpoint, timeout: float = TIMEOUT) -> None:
        """``timeout`` is in seconds, for connecting and for each wait on bytes."""
        self.endpoint = endpoint
        self._timeout = timeout
        self._kept = KeptAnswers()

    @cached_property
    def _http(self) -> httpx.Client:
        """Made for the first `request`."""
        import httpx

        headers = {"Authorization": f"Bearer {self.endpoint.token}"} if self.endpoint.token else {}
        return httpx.Client(base_url=self.endpoint.url, headers=headers, timeout=self._timeout)

    def close(self) -> None:
        if "_http" in vars(self):
            self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        json: Any = None,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
        repeatable: bool | None = None,
    ) -> httpx.Response:
        """Send a request; ``path`` stands from the root. ``repeatable`` says whether sending it twice does no harm
        (by default: if it is a GET), and so whether connection errors and passing refusals are tried again.

        Raises:
            CouldNotReach: no answer came.
            ServiceError: the service refused; the subclass follows the status.
        """
        import httpx

        query = {k: v for k, v in (params or {}).items() if v is not None}
        kept = self._kept.get(path, query) if method == "GET" else None
        if kept is not None:
            headers = {"If-None-Match": kept.tag} | (headers or {})
        attempts = ATTEMPTS if (method == "GET" if repeatable is None else repeatable) else 1
        request = {"params": query, "json": json, "content": content, "headers": headers}
        attempt, patience = 1, MOST_PATIENCE if attempts > 1 else 0.0
        while True:
            try:
                response = self._http.request(method, path, **request)
            except httpx.TransportError as error:
                if attempt >= attempts:
                    raise self._unreachable(error) from error
                time.sleep(retry_delay(attempt))
                attempt += 1
                continue
            delay = _delay(response, attempt, attempts, patience)
            if delay is None:
                if kept is not None and response.status_code == HTTPStatus.NOT_MODIFIED:
                    return kept.again(response)
                _raise_for_problem(response)
                if method == "GET":
                    self._kept.keep(path, query, response)
                return response
            time.sleep(delay)
            attempt += 1
            patience -= delay

    def ask(self, path: str, json: Any) -> Any:
        """POST what does no harm, once, and return the JSON of the answer. The process does not get httpx by it.

        Raises:
            CouldNotReach: no answer came.
            NoUsableAnswer: as `light.post`; a `request` says why, or has an answer.
        """
        from loopwright.session import light

        try:
            return light.post(self.endpoint, path, json, self._timeout)
        except OSError as error:
            raise self._unreachable(error) from error

    def get(self, model: type[Model], path: str, **params: Any) -> Model:
        """GET one resource."""
        return parse(model, self.request("GET", path, params=params))

    def pages(self, model: type[Model], path: str, **params: Any) -> Iterator[Model]:
        """Yield all items of a list. Pages are fetched as they are needed."""
        token = None
        while True:
            response = self.request("GET", path, params={**params, "page_token": token})
            page = parse(schemas.Page[model], response)  # type: ignore[valid-type]
            yield from page.items
            token = page.next_page_token
            if token is None:
                return

    def download(self, path: str, file: IO[bytes]) -> None:
        """GET a file that the service sends while it makes it, part after part.

        Raises CouldNotReach and ServiceError.
        """
        import httpx

        timeout = httpx.Timeout(self._timeout, read=DOWNLOAD_SECONDS)
        attempt, patience = 1, MOST_PATIENCE
        while True:
            try:
                with self._http.stream("GET", path, timeout=timeout) as response:
                    if response.is_success:
                        for part in response.iter_bytes():
                            file.write(part)
                        return
                    response.read()
            except httpx.TransportError as error:
                raise self._unreachable(error) from error
            delay = _delay(response, attempt, ATTEMPTS, patience)
            if delay is None:
                raise _problem(response)
            time.sleep(delay)
            attempt += 1
            patience -= delay

    def stream(self, path: str, last_event_id: int | None, read_timeout: float) -> Iterator[ServerSentEvent]:
        """One connection's worth of server-sent events; the caller resumes with the last id that it saw.

        Raises:
            CouldNotReach: the connection failed, broke, or was silent for ``read_timeout`` seconds.
            ServiceError: the service refused the stream.
        """
        import httpx

        headers = {"Accept": "text/event-stream"}
        if last_event_id is not None:
            headers["Last-Event-ID"] = str(last_event_id)
        timeout = httpx.Timeout(self._timeout, read=read_timeout)
        try:
            with self._http.stream("GET", path, headers=headers, timeout=timeout) as response:
                if response.is_error:
                    response.read()
                _raise_for_problem(response)
                yield from read_events(response.iter_bytes())
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> CouldNotReach:
        reason = str(error) or type(error).__name__
        return CouldNotReach(
            f"could not reach Loopwright at {self.endpoint.url}: {reason}. "
            "Start one with 'loopwright service start', or set another with LOOPWRIGHT_URL or 'loopwright login'."
        )


def parse(model: type[Model], response: httpx.Response) -> Model:
    """Return the answer as a wire model. Unknown fields, which a newer service may send, are ignored.

    Raises:
        UnexpectedAnswer: the answer is no such model.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate_json(response.content, extra="ignore")
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        where = "".join(f"{part}: " for part in found["loc"])
        raise UnexpectedAnswer(
            f"the answer of {response.url} is not a {model.__name__} ({where}{found['msg']}); see whether the URL is "
            "that of a Loopwright service, and of no other version than this client"
        ) from error


def body(model: type[BaseModel], **fields: Any) -> dict[str, Any]:
    """Return the body of a request, validated before it is sent.

    Raises:
        ValueError: a field has an invalid value; the message names the field.
    """
    from pydantic import ValidationError

    try:
        return model(**fields).model_dump(mode="json")
    except ValidationError as error:
        raise ValueError("; ".join(map(_complaint, error.errors(include_url=False)))) from None


def _complaint(error: Any) -> str:
    where = ".".join(map(str, error["loc"]))
    return f"{where}: {error['msg'].removeprefix('Input ')}, and is {reprlib.repr(error['input'])}"


def _raise_for_problem(response: httpx.Response) -> None:
    if response.is_success:
        return
    raise _problem(response)


def _problem(response: httpx.Response) -> ServiceError:
    from pydantic import ValidationError

    try:
        problem = schemas.Problem.model_validate_json(response.content)
    except ValidationError:
        # A proxy in between answers in its own format.
        detail = response.text.strip()[:500] or "the answer says nothing more"
        problem = schemas.Problem(title=response.reason_phrase or "Error", status=response.status_code, detail=detail)
    return from_problem(problem)


def retry_delay(attempt: int) -> float:
    """Seconds before the next attempt: doubling, spread so that many clients do not come back at once."""
    return min(FIRST_DELAY * 2 ** (attempt - 1), LONGEST_DELAY) * _JITTER.uniform(0.75, 1.25)


def _delay(response: httpx.Response, attempt: int, attempts: int, patience: float) -> float | None:
    """Seconds before the next attempt; None if this answer is the last one.

    A service that is busy with other requests of the same user (429) is asked again as long as there is patience.
    """
    if response.status_code not in PASSING:
        return None
    value = response.headers.get("Retry-After", "")
    if not value.isdigit():
        return retry_delay(attempt) if attempt < attempts else None
    delay = float(value) * _JITTER.uniform(1.0, 1.5)
    may_wait = delay <= patience if response.status_code == HTTPStatus.TOO_MANY_REQUESTS else attempt < attempts
    return min(delay, LONGEST_DELAY) if may_wait else None
