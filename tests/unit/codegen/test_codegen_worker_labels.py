"""Labels of workers, as people write them."""

from __future__ import annotations

import pytest

from loopwright.codegen import worker_labels
from loopwright.codegen.errors import InvalidLabel


def test_labels_are_read_and_shown_by_key() -> None:
    labels = worker_labels.parse(["tier=gold", "rack=a-1"])
    assert labels == {"tier": "gold", "rack": "a-1"}
    assert worker_labels.text(labels) == "rack=a-1, tier=gold"


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        (["rack"], "no label"),
        (["=a"], "no label"),
        (["rack=a=b"], "no label"),
        (["rack=-a"], "no label"),
        (["ray.io/rack=a"], "no label"),
        (["rack=a,tier=b"], "no label"),
        (["rack=" + 64 * "a"], "no label"),
        (["rack=a", "rack=b"], "given twice"),
        ([f"key{number}=a" for number in range(worker_labels.MOST + 1)], "are the limit"),
    ],
)
def test_other_texts_are_refused(texts: list[str], complaint: str) -> None:
    with pytest.raises(InvalidLabel, match=complaint):
        worker_labels.parse(texts)


def test_a_worker_matches_if_it_has_all_labels() -> None:
    own = {"rack": "a", "tier": "gold"}
    assert worker_labels.matches(own, {})
    assert worker_labels.matches(own, {"rack": "a"})
    assert not worker_labels.matches(own, {"rack": "b"})
    assert not worker_labels.matches({}, {"rack": "a"})
