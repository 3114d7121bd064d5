"""What an expression of PromQL asks for."""

from __future__ import annotations

import promql_parser


def selectors(expression: str) -> list[tuple[str, dict[str, str]]]:
    """Return the metrics of an expression, each with its matchers. Raises ValueError for what does not parse."""
    found: list[tuple[str, dict[str, str]]] = []

    def visit(node: object) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            assert node.name is not None
            found.append((node.name, {matcher.name: matcher.value for matcher in node.matchers.matchers}))

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found
