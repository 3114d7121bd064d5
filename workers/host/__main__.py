"""``python -m workers.host``: see `workers.host`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from loopwright.codegen.errors import UnsupportedVersion
from loopwright.codegen.versions import check_versions
from workers.host import token
from workers.host.errors import CannotJoin
from workers.host.options import parser, read

__all__ = ["main", "parser"]


def say(text: str) -> None:
    print(f"loopwright: {text}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Exit status: 0 it left in order, 1 it could not join, or lost the fleet for good, 2 usage."""
    options = read(arguments)
    try:
        check_versions()
        token.show(options.token_file)
        from workers.host.run import Host

        host = Host(options, say)
        host.handle_signals()
        host.run()
    except (CannotJoin, UnsupportedVersion) as error:
        sys.exit(f"loopwright: {error}")


if __name__ == "__main__":
    main()
