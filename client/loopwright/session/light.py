"""A request by Python's own library: for a process that only loads a model, httpx would be 16 MiB and 0.1 s."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from loopwright.session.config import Endpoint


class NoUsableAnswer(Exception):
    """A light request was not enough; the message says why."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token is for the service alone."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post(endpoint: Endpoint, path: str, body: Any, timeout: float) -> Any:
    """Send JSON once, and return the JSON of the answer.

    Args:
        endpoint: the service.
        path: from the root.
        body: what is sent.
        timeout: seconds, for connecting and for each wait on bytes.

    Raises:
        NoUsableAnswer: there was an answer, and it was a refusal or no JSON, or the service's TLS certificate is not
            trusted by Python itself: ask by a `Transport`, which knows what to do.
        OSError: no answer came.
    """
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if endpoint.token:
        headers["Authorization"] = f"Bearer {endpoint.token}"
    request = urllib.request.Request(endpoint.url + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=timeout) as response:
            return json.load(response)
    except (urllib.error.HTTPError, ValueError) as error:
        raise NoUsableAnswer(str(error)) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLError):
            raise NoUsableAnswer(str(error)) from error
        raise OSError(str(error.reason)) from error
    except http.client.HTTPException as error:
        raise OSError(str(error) or type(error).__name__) from error
