"""Which keys of attention some query sees, by blocks of neighbours: a schedule reads no others.

A mask that is computed when the model runs, such as that of a cache which is not full or of a sliding window, often
hides most keys from all queries. Flags say which blocks have a key that is seen. They are computed once for a mask, and
the attention of all layers takes them as an argument.
"""

from __future__ import annotations

from typing import Any

from tvm import te, tirx

_SIZES = (32, 16)
"""Keys of a block: whole vectors of each processor. A block that is seen in part is read as a whole."""


def block_size(columns: int) -> int | None:
    """Return the keys of a block, of which there are at least two; None if the keys are no whole number of blocks."""
    return next((size for size in _SIZES if columns % size == 0 and columns > size), None)


def seen_blocks(mask: te.Tensor, size: int, *, hides: bool) -> te.Tensor:
    """Return for each block of ``size`` keys whether a query sees one of them, bool ``[keys / size]``.

    Args:
        mask: bool, with the keys along its last axis.
        hides: the value of the mask that hides a key.
    """
    *outer, columns = map(int, mask.shape)
    extents = [extent for extent in outer if extent > 1]
    axes = [te.reduce_axis((0, extent), f"r{place}") for place, extent in enumerate([*extents, size])]

    def seen(block: Any) -> Any:
        rows = iter(axes)
        element = mask(*(next(rows) if extent > 1 else 0 for extent in outer), block * size + axes[-1])
        return te.max(tirx.Cast("int8", tirx.Not(element) if hides else element), axis=axes)

    found = te.compute((columns // size,), seen, name="seen")
    return te.compute(found.shape, lambda block: found(block) != tirx.const(0, "int8"), name="seen_keys")
