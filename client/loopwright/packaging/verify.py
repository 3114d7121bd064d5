"""Replaying what a package says of itself, on the machine where it lies. Needs no compiler."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from loopwright.comparing.ratios import paired
from loopwright.errors import WrongCertificate, first_line
from loopwright.packaging.manifest import Manifest, PackagedFunction
from loopwright.packaging.package_files import NAME, digests
from loopwright.packaging.verified import NoPackage, Verification, Verified
from loopwright.results import evidence

SLOWER = 0.95
"""Speedup over the unscheduled program below which a function counts as slower, with its whole interval. Not tuned."""
UNLIKE_CERTIFIED = 1.5
"""Latency here over the certified one from which it is said that they differ. Not tuned."""


def read(folder: Path) -> Manifest:
    """Return the manifest of a package whose files are those that it names.

    Raises:
        NoPackage: it is none, or a file is missing, changed or added.
    """
    path = folder / NAME
    try:
        manifest = Manifest.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NoPackage(f"{folder} is not a package: it contains no {NAME}") from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise NoPackage(f"{path} is not a manifest that this version can read: {first_line(error)}") from error
    found = dict(digests(folder))
    changed = sorted(name for name in manifest.files if found.get(name) not in (None, manifest.files[name]))
    complaints = {
        "missing": sorted(set(manifest.files) - set(found)),
        "changed since it was packaged": changed,
        "not in its manifest": sorted(set(found) - set(manifest.files)),
    }
    summary = "; ".join(f"{', '.join(names)}: {what}" for what, names in complaints.items() if names)
    if summary:
        raise NoPackage(f"{folder} was changed after it was packaged: {summary}")
    return manifest


def verify(folder: Path, rounds: int = 10, keys: Path | None = None) -> Verification:
    """Check a package's files, run its model on the example and each tuned function on random inputs, and time them.

    Args:
        folder: what `Client.package` wrote.
        rounds: samples of each program.
        keys: a file that ``loopwright key list --json`` wrote; the certificates must be signed with one of its keys.
            Without it, signatures are not checked.

    Raises:
        NoPackage: the folder is no package, was changed since it was made, or its programs do not run on this machine.
        WrongCertificate: a certificate is not signed with one of the keys, or is for another function.
        ValueError: the file is no list of keys.
    """
    manifest = read(folder)
    if keys is not None:
        _check_certificates(manifest, evidence.read_keys(keys))
    command = [sys.executable, "-m", "loopwright.packaging.replay", str(folder), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoPackage(f"{folder} does not run on this machine: {_reason(done, manifest)}")
    lines = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
    model, functions = lines[""], [_verified(each, lines.get(each.name)) for each in manifest.functions]
    wrong = model["wrong"]
    return Verification(
        manifest,
        Verified(
            "",
            "wrong" if wrong else "holds",
            wrong,
            model["error"],
            statistics.median(model["run_secs"]) * 1e6 if model["run_secs"] else None,
        ),
        tuple(functions),
    )


def _check_certificates(manifest: Manifest, keys: evidence.Keys) -> None:
    for function in manifest.functions:
        if function.certificate is not None:
            signed = evidence.check_certificate(function.certificate, keys, function.name)
            if (signed.workload_hash, signed.device_class) != (function.workload_hash, function.device_class):
                raise WrongCertificate(
                    f"the certificate of {function.name} is for the function {signed.workload_hash} on the class "
                    f"{signed.device_class}, and not for this one; package the model again"
                )


def _verified(function: PackagedFunction, line: dict[str, object] | None) -> Verified:
    certified = function.certificate.best_us if function.certificate else None
    if line is None:
        reason = "its best is the unscheduled program" if function.outcome == "baseline" else "nothing is known of it"
        return Verified(function.name, "not checked", reason, certified_us=certified)
    if line["wrong"]:
        return Verified(function.name, "wrong", str(line["wrong"]), _float(line["error"]), certified_us=certified)
    mine, unscheduled = _floats(line["run_secs"]), _floats(line["unscheduled_secs"])
    ratio = paired([unscheduled], [mine])
    slower, here = ratio.high < SLOWER, statistics.median(mine) * 1e6
    why = "it is slower than the unscheduled program on this machine" if slower else None
    if why is None and certified is not None and here > UNLIKE_CERTIFIED * certified:
        why = f"it takes {here / certified:.2g}x its certified time: this machine is busy, or it is another one"
    return Verified(
        function.name,
        "slower" if slower else "holds",
        why,
        _float(line["error"]),
        here,
        certified,
        (ratio.value, ratio.low, ratio.high),
    )


def _reason(done: subprocess.CompletedProcess[str], manifest: Manifest) -> str:
    if done.returncode == -signal.SIGILL:
        return f"the CPU lacks instructions of the target {json.dumps(manifest.target)}; package the model for this CPU"
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    ended = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    return f"the process ended with {ended}: {last}"


def _float(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _floats(values: object) -> Sequence[float]:
    assert isinstance(values, list)
    return [_float(value) for value in values]
