"""Which artifacts are kept for a closing race."""

from __future__ import annotations

from workers.messages import Artifact, ArtifactFormat
from workers.ray.kept_artifacts import LIMIT, KeptArtifacts


def artifact(code: str) -> Artifact:
    return Artifact(ArtifactFormat.LLVM_IR, code)


def test_the_artifacts_of_the_fastest_are_kept_until_they_are_taken() -> None:
    kept = KeptArtifacts()
    latencies = {str(number): float(number * 37 % (2 * LIMIT)) for number in range(2 * LIMIT)}
    for trace, latency in latencies.items():
        kept.add("module", trace, latency, artifact(trace))
    kept.add("other", "0", 0.0, artifact("another"))
    taken = kept.take("module")
    assert sorted(latencies[str(trace)] for trace in taken) == list(range(LIMIT))
    assert all(built == artifact(str(trace)) for trace, built in taken.items())
    assert kept.take("module") == {}
    assert kept.take("other") == {"0": artifact("another")}


def test_a_slow_baseline_is_kept_for_its_race() -> None:
    kept = KeptArtifacts()
    kept.add("module", None, 99.0, artifact("baseline"))
    for number in range(2 * LIMIT):
        kept.add("module", str(number), float(number), artifact(str(number)))
    taken = kept.take("module")
    assert taken.pop(None) == artifact("baseline")
    assert sorted(map(int, filter(None, taken))) == list(range(LIMIT - 1))
