"""Every function that writes into the database retries a conflict, unless it is known to need none."""

from __future__ import annotations

import ast
from pathlib import Path

import db

NOT_RETRIED = {
    # A second transaction follows, which may be the one that fails.
    "redeem",
    # Done again by the next round of housekeeping; a job takes several transactions.
    *("sweep", "prune"),
}


def test_functions_with_a_write_transaction_retry_conflicts() -> None:
    missing = {
        node.name
        for file in Path(db.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
        and "self._sessions.write(" in ast.unparse(node)
        and "retry_conflicts" not in {ast.unparse(each) for each in node.decorator_list}
    }
    assert missing == NOT_RETRIED
