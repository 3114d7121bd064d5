"""Write the schema of the REST interface, as the application describes itself, to the file given."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from service.app import create_app
from service.settings import Settings


def main() -> None:
    schema = create_app(Settings()).openapi()
    Path(sys.argv[1]).write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
