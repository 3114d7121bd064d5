"""``scripts/audit``: what advisory sources know about the locked packages.

Both tools can end without an answer and not say so: pip-audit skips what its source does not know and ends with 0;
npm ends with 1 if its registry refuses to answer, as it does for a finding. So their answers are read here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
LOCKS = ("service", "otel", "dev", "rivals")
CLEAN, FOUND, NOT_ASKED = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Audit:
    """What is known about a set of packages. ``unknown``: why some or all of them were not looked up."""

    advisories: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def python_audit(answer: str, error: str) -> Audit:
    """Read pip-audit's JSON, or its ``error`` if it gave none."""
    try:
        packages: list[dict[str, Any]] = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Audit(unknown=(f"pip-audit gave no answer: {_last_line(error)}",))
    return Audit(
        tuple(
            f"{package['name']} {package['version']}: {advisory['id']}"
            for package in packages
            for advisory in package.get("vulns", [])
        ),
        tuple(package["skip_reason"] for package in packages if "skip_reason" in package),
    )


def npm_audit(answer: str, error: str) -> Audit:
    """Read npm's JSON, or its ``error`` if it gave none."""
    try:
        report = json.loads(answer)
        packages: dict[str, dict[str, Any]] = report["vulnerabilities"]
    except (ValueError, KeyError, TypeError):
        return Audit(unknown=(f"npm audit gave no answer: {_message(answer) or _last_line(error)}",))
    return Audit(tuple(f"{name} {package['range']}: {package['severity']}" for name, package in packages.items()))


def exit_status(audits: list[Audit]) -> int:
    """Return FOUND, NOT_ASKED or CLEAN, the first that applies to any of them."""
    if any(audit.advisories for audit in audits):
        return FOUND
    return NOT_ASKED if any(audit.unknown for audit in audits) else CLEAN


def main() -> int:
    audits = []
    for name in LOCKS:
        lock = ROOT / "requirements" / f"{name}.txt"
        options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
        answer, error = _run(str(BIN / "pip-audit"), "--requirement", str(lock), *options)
        audits.append(_report(lock, python_audit(answer, error)))
    lock = ROOT / "service" / "dashboard" / "package-lock.json"
    answer, error = _run(str(BIN / "npm"), "--prefix", str(lock.parent), "audit", "--json", "--package-lock-only")
    audits.append(_report(lock, npm_audit(answer, error)))
    return exit_status(audits)


def _run(*command: str) -> tuple[str, str]:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def _report(lock: Path, audit: Audit) -> Audit:
    name = lock.relative_to(ROOT)
    for advisory in audit.advisories:
        print(f"{name}: {advisory}")
    if audit.unknown:
        print(f"{name}: NOT AUDITED, {len(audit.unknown)} not looked up. The first: {audit.unknown[0]}")
    elif not audit.advisories:
        print(f"{name}: nothing is known")
    return audit


def _message(answer: str) -> str | None:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return None


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]


if __name__ == "__main__":
    sys.exit(main())
