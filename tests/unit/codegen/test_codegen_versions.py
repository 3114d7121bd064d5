"""One pair of versions of TVM and tvm-ffi, checked before TVM is imported, and what imports of codegen load."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from loopwright.codegen import versions
from loopwright.codegen.errors import UnsupportedVersion

ROOT = Path(__file__).parents[3]


def test_the_installed_versions_are_the_pinned_ones() -> None:
    versions.check_versions()


@pytest.mark.parametrize("name", ["apache-tvm", "apache-tvm-ffi"])
def test_another_version_is_refused_with_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(versions.PINS, name, "9.9")
    with pytest.raises(UnsupportedVersion, match=rf"pip install .*'{name}==9\.9'"):
        versions.check_versions()


def test_a_version_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(versions.PINS, "loopwright-none-such", "1")
    with pytest.raises(UnsupportedVersion, match=r"loopwright-none-such \(none\) is installed"):
        versions.check_versions()


def test_a_record_that_needs_a_newer_codegen_is_refused() -> None:
    versions.check_codegen_version(versions.CODEGEN_VERSION)
    with pytest.raises(UnsupportedVersion, match=r"needs version \d+ .* pip install -U 'loopwright\[tvm\]'"):
        versions.check_codegen_version(versions.CODEGEN_VERSION + 1)


def test_the_project_asks_for_the_pinned_versions_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pins = {f"{name}=={version}" for name, version in versions.PINS.items()}
    assert set(project["project"]["optional-dependencies"]["tvm"]) == pins
    assert pins <= set(project["dependency-groups"]["workers"])


def loaded_by(statement: str) -> set[str]:
    """The top-level packages that a fresh process has loaded after a statement. It has no PyTorch for TVM to load."""
    names = "{name.partition('.')[0] for name in sys.modules}"
    code = f"import sys; sys.modules['torch'] = None\n{statement}\nprint(*{names})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_codegen_loads_neither_http_nor_schemas() -> None:
    files = (ROOT / "client/loopwright/codegen").glob("*.py")
    names = ", ".join(f"loopwright.codegen.{file.stem}" for file in files if file.stem != "__init__")
    loaded = loaded_by(f"import {names}")
    assert "tvm" in loaded
    assert not {"httpx", "pydantic", "rich", "typer"} & loaded


def test_versions_and_errors_load_no_tvm() -> None:
    loaded = loaded_by("import loopwright.codegen.versions, loopwright.codegen.errors")
    assert not {"httpx", "pydantic", "rich", "typer", "tvm", "tvm_ffi", "numpy"} & loaded


def test_every_public_name_is_there() -> None:
    import loopwright

    assert set(loopwright.__all__) <= set(dir(loopwright))
    assert all(getattr(loopwright, name) is not None for name in loopwright.__all__)
    assert callable(loopwright.explain)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = loopwright.nothing
