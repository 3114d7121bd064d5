"""Debug locations in LLVM's IR that TVM leaves without a function: those in the bodies of parallel loops.

TVM's code generator gives each instruction the location of its statement, and each function a subprogram, as DWARF
calls it; but not the functions that its threads run. LLVM writes no locations of a function without a subprogram.
"""

from __future__ import annotations

import itertools
import re

_DEFINITION = re.compile(r"^define .*@(?P<name>[\w.$]+)\(.*\{$")
_USE = re.compile(r"!dbg !(\d+)")
_LOCATION = re.compile(
    r"^!(\d+) = (?:distinct )?!DILocation\((line: \d+(?:, column: \d+)?), scope: !\d+\)$", re.MULTILINE
)
_SUBPROGRAM = re.compile(
    r"^!\d+ = distinct !DISubprogram\(.*?(scope: !\d+, file: !\d+), type: (!\d+).*?(unit: !\d+)", re.MULTILINE
)
_NUMBERED = re.compile(r"^!(\d+) = ", re.MULTILINE)
_ANNOTATION = re.compile(r"^\s*#dbg_.*\n", re.MULTILINE)
"""What is known of variables, which nobody asks for here."""


def with_subprograms(ir: str) -> str:
    """Return the text of a module in which each function with locations has a subprogram."""
    template = _SUBPROGRAM.search(ir)
    if template is None:
        return ir
    ir = _ANNOTATION.sub("", ir)
    places = dict(_LOCATION.findall(ir))
    numbers = itertools.count(1 + max(map(int, _NUMBERED.findall(ir))))
    lines, added = ir.splitlines(), []
    own: dict[str, int] | None = None
    """New numbers of locations in the function that the walk is in; None in one that has a subprogram."""
    subprogram = 0
    for position, line in enumerate(lines):
        if (found := _DEFINITION.match(line)) is not None:
            own = None if "!dbg" in line else {}
            if own is not None:
                subprogram = next(numbers)
                lines[position] = f"{line[:-1]}!dbg !{subprogram} {{"
                added.append(
                    f'!{subprogram} = distinct !DISubprogram(name: "{found["name"]}", {template[1]}, '
                    f"type: {template[2]}, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition | DISPFlagOptimized, "
                    f"{template[3]})"
                )
        elif line == "}":
            own = None
        elif own is not None and (use := _USE.search(line)) is not None:
            if use[1] in places:
                if use[1] not in own:
                    own[use[1]] = next(numbers)
                    added.append(f"!{own[use[1]]} = !DILocation({places[use[1]]}, scope: !{subprogram})")
                lines[position] = _USE.sub(f"!dbg !{own[use[1]]}", line)
            else:
                lines[position] = re.sub(r", !dbg !\d+", "", line)
    return "\n".join([*lines, *added, ""])
