"""Signatures of webhooks are those of the Standard Webhooks specification."""

from __future__ import annotations

import base64
import re
import time
from pathlib import Path
from typing import Any

import pytest

from service.webhooks import sign

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "webhooks.md"
MESSAGE = "msg_p5jXN8AQM9LWM0D4loKWxJek"


def test_the_specifications_example_has_its_signature() -> None:
    assert sign.headers(SECRET, MESSAGE, 1614265330, b'{"test": 2432232314}') == {
        "webhook-id": MESSAGE,
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize(
    ("message", "timestamp", "body"),
    [("msg_x", 1, b"{}"), (MESSAGE, 2, b"{}"), (MESSAGE, 1, b"{ }")],
)
def test_a_signature_is_of_the_id_the_time_and_the_body(message: str, timestamp: int, body: bytes) -> None:
    signed = sign.headers(SECRET, MESSAGE, 1, b"{}")["webhook-signature"]
    assert sign.headers(SECRET, message, timestamp, body)["webhook-signature"] != signed


def test_secrets_are_of_24_random_bytes() -> None:
    made = {sign.new_secret() for _ in range(100)}
    assert len(made) == 100
    assert {len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) for secret in made} == {24}


def test_a_secret_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="base64"):
        sign.headers("whsec_no base64", MESSAGE, 1, b"{}")


def test_a_receiver_that_does_as_the_guide_says_takes_what_is_genuine_and_recent() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    receiver: dict[str, Any] = {}
    exec(code, receiver)
    is_genuine = receiver["is_genuine"]
    now = int(time.time())
    headers = sign.headers(SECRET, MESSAGE, now, b"{}")
    both = headers | {"webhook-signature": f"v1,bm90aGluZw== {headers['webhook-signature']}"}
    assert is_genuine(SECRET, headers, b"{}")
    assert is_genuine(SECRET, both, b"{}")
    assert not is_genuine(SECRET, headers, b"{ }")
    assert not is_genuine(sign.new_secret(), headers, b"{}")
    assert not is_genuine(SECRET, sign.headers(SECRET, MESSAGE, now - 600, b"{}"), b"{}")
