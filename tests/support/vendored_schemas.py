"""The schemas of files of others that come with check-jsonschema, whose own program takes seconds to start."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from jsonschema.validators import validator_for
from ruamel.yaml import YAML


def errors(schema: str, text: str) -> list[str]:
    """Return what a schema of the folder ``vendor`` finds wrong in a YAML 1.2 document."""
    spec = importlib.util.find_spec("check_jsonschema")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).parent / "builtin_schemas" / "vendor" / f"{schema}.json"
    loaded = json.loads(file.read_text())
    found = validator_for(loaded)(loaded).iter_errors(YAML(typ="safe").load(text))
    return [f"{error.json_path}: {error.message}" for error in found]
