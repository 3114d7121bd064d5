"""The latest answers of the service, which it need not send again while they are the same."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

_MOST = 32
"""Answers. Not tuned."""
_LONGEST = 2**20
"""Bytes of an answer. Not tuned."""

Params = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """``tag`` goes along with the next request, so that the service can say that the answer is the same (304)."""

    tag: str
    content: bytes

    def again(self, response: httpx.Response) -> httpx.Response:
        """Return the answer in place of a response that says so."""
        return type(response)(
            200, headers={"Content-Type": "application/json"}, content=self.content, request=response.request
        )


class KeptAnswers:
    """The latest used answers with tags, by path and parameters. Thread-safe."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, KeptAnswer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str, params: Params) -> KeptAnswer | None:
        """Return the answer to this request, if it is kept."""
        with self._lock:
            return self._answers.get(_key(path, params))

    def keep(self, path: str, params: Params, response: httpx.Response) -> None:
        """Keep an answer that has a tag and is not too long."""
        tag = response.headers.get("ETag")
        if response.status_code != HTTPStatus.OK or tag is None or len(response.content) > _LONGEST:
            return
        with self._lock:
            self._answers[_key(path, params)] = KeptAnswer(tag, response.content)
            self._answers.move_to_end(_key(path, params))
            if len(self._answers) > _MOST:
                self._answers.popitem(last=False)


def _key(path: str, params: Params) -> str:
    return f"{path} {sorted(params.items())}"
