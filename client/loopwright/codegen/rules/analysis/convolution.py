"""The one convolution in a function: which axes are pixels, which are channels, and what prepares the image."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tvm
from tvm import tirx
from tvm.sym import detect_linear_equation

from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, found, is_var, variables
from loopwright.codegen.rules.analysis.steps import remains


@dataclass(frozen=True)
class Convolution:
    """``C[…, pixels, …, channel, …] += image[…, pixel * stride + tap, …] * kernel[…, channel, …]``.

    ``pixels``, ``channel`` and ``phases`` are positions among the block's spatial axes. ``pixels`` are the axes that
    the image has and the kernel has not, in the order of C; the batch is one of them. ``channel`` is the last of those
    that the kernel has, and ``phases`` are the others: a transposed convolution has a kernel for each phase.

    Args:
        prepared: the names of the blocks that pad the image and rearrange the kernel, if there are any.
        prepares_image: the name of the one of these that writes the image, if there is one.
        group: the number of neighbouring channels that read the same elements of the image.
        kernel_is_weight: whether the kernel is the function's weight.
        is_turned: whether vectors are to run along the channels though the pixels of a line are neighbours in C.
    """

    block: Block
    image: Any
    kernel: Any
    pixels: tuple[int, ...]
    channel: int
    phases: tuple[int, ...]
    prepared: tuple[str, ...]
    prepares_image: str | None
    group: int
    kernel_is_weight: bool
    is_turned: bool = False

    def extent(self, axis: int) -> int:
        return self.block.spatial[axis][1]

    @property
    def channels(self) -> int:
        return self.extent(self.channel)

    @property
    def other_axes(self) -> list[int]:
        """The positions of the pixels' axes but the last, and of axes that nothing depends on: batch, lines."""
        others = (self.channel, self.pixels[-1], *self.phases)
        return [n for n in range(len(self.block.spatial)) if n not in others]

    @property
    def lines(self) -> int:
        """The extent of the last of `other_axes`."""
        return self.extent(self.other_axes[-1]) if self.other_axes else 1

    @property
    def depth(self) -> int:
        """The number of terms in a sum."""
        return math.prod(extent for _, extent in self.block.reduced)

    @property
    def order(self) -> list[int]:
        """The positions of the reduced axes from the outermost to the innermost.

        With the taps inside, LLVM would keep the pixels that taps share in registers, and move sums to memory if many
        vectors of channels are added to.
        """
        places = list(range(len(self.block.reduced)))
        if not self.is_turned:
            return places
        axes = [self.block.spatial[n][0] for n in self.pixels]
        moving = [index for index in self.image.indices if any(contains(index, axis) for axis in axes)]
        taps = [n for n in places if any(contains(index, self.block.reduced[n][0]) for index in moving)]
        return [*taps, *(n for n in places if n not in taps)]

    @property
    def kernel_order(self) -> list[int]:
        """The dimensions of the kernel but that of the channels: in the order of the sum if vectors are turned."""
        others = [n for n in range(len(self.kernel.indices)) if n != self.kernel_dimension]
        if not self.is_turned:
            return others
        depths = [self.block.reduced[n][0] for n in self.order]

        def depth(dimension: int) -> int:
            index = self.kernel.indices[dimension]
            return next((n for n, axis in enumerate(depths) if contains(index, axis)), -1)

        return sorted(others, key=depth)

    @cached_property  # asked for with each tile that is weighed
    def kernel_dimension(self) -> int:
        """The dimension of the kernel in which the channels are."""
        var = self.block.spatial[self.channel][0]
        return next(n for n, index in enumerate(self.kernel.indices) if contains(index, var))

    @property
    def kernel_is_contiguous(self) -> bool:
        """Whether the vectors can be computed with the kernel as it is."""
        return not self.has_channel_lanes or self.kernel_dimension == len(self.kernel.indices) - 1

    @property
    def kernel_index(self) -> int:
        """The position of the kernel among the buffers that the block reads."""
        reads = [
            region.source for region in self.block.block.reads if not region.source.same_as(self.block.store.buffer)
        ]
        return next(n for n, source in enumerate(reads) if source.same_as(self.kernel.source))

    @property
    def has_known_phases(self) -> bool:
        """Whether there are no phases, or one axis of them for each of the pixels' axes that follow the batch."""
        return not self.phases or (self.channels_last and self.other_axes == [0, *self.pixels[1:-1]])

    @property
    def lacks_taps(self) -> bool:
        """Whether some phases have fewer taps than others, and leave terms of the sum out."""
        return isinstance(self.block.store.value.b, tirx.Select)

    @property
    def channels_last(self) -> bool:
        return self.channel == len(self.block.spatial) - 1

    @property
    def has_channel_lanes(self) -> bool:
        """Whether the elements of a vector are channels; else they are pixels of a line."""
        return self.channels_last or self.is_turned

    @property
    def image_dimension(self) -> int:
        """The dimension of the image in which the last pixel axis is."""
        var = self.block.spatial[self.pixels[-1]][0]
        return next(n for n, index in enumerate(self.image.indices) if contains(index, var))

    @property
    def stride(self) -> int:
        """Elements of the image between two neighbours on the last pixel axis."""
        var = self.block.spatial[self.pixels[-1]][0]
        return coefficient(self.image.indices[self.image_dimension], var) or 0

    def read(self, lines: int) -> int:
        """Return how many elements of one image are read for that many neighbouring lines."""
        var = self.block.spatial[self.other_axes[-1]][0]
        shape = [int(extent) for extent in self.image.source.shape]
        place = next(n for n, index in enumerate(self.image.indices) if contains(index, var))
        step = coefficient(self.image.indices[place], var) or 0
        read = lines * step + max(0, shape[place] - self.lines * step)
        return math.prod(shape[place + 1 :]) * read

    @staticmethod
    def of(program: AnalysedProgram, dtype: str = "float32") -> Convolution | None:
        """Return the convolution that is the only reduction of a function, or None.

        ``dtype`` is that of its sums, to which operands of other dtypes are cast: bytes to int32, halves to float32.
        Depthwise convolutions, in which no two channels read the same elements, are none.
        """
        if len(program.reductions) != 1 or len(program.outputs) != 1:
            return None
        [block] = program.reductions
        loads = _factors(block)
        if loads is None or block.dtype != dtype or len(block.reduced) < 2:
            return None
        axes = [axis for axis, _ in block.spatial]
        if len(block.store.indices) != len(axes) or not all(map(is_var, block.store.indices, axes)):
            return None
        image, kernel = loads if _is_image(loads[0]) else reversed(loads)
        if not _is_image(image) or _is_image(kernel):
            return None
        pixels = tuple(n for n, axis in enumerate(axes) if _uses(image, axis) and not _uses(kernel, axis))
        *phases, channel = [n for n, axis in enumerate(axes) if _uses(kernel, axis)] or [-1]
        if not pixels or channel < 0 or len(axes) - 1 not in (channel, pixels[-1]):
            return None
        group = _group(image, axes[channel], block.spatial[channel][1])
        if group is None or any(_uses(image, axes[n]) for n in phases):
            return None
        prepared = tuple(_prepared(program, (image, kernel)))
        makes_image = next(iter(_prepared(program, (image,))), None)
        is_weight = program.weight is not None and kernel.source.same_as(program.weight)
        convolution = Convolution(
            block, image, kernel, pixels, channel, tuple(phases), prepared, makes_image, group, is_weight
        )
        return convolution if convolution.stride > 0 and convolution.has_known_phases else None


def is_simple(program: AnalysedProgram, convolution: Convolution) -> bool:
    """Return whether all blocks are the convolution, its result, or prepare it, or are inlined."""
    known = (*convolution.prepared, convolution.block.name, program.blocks[-1].name)
    remaining = [block.name for block in program.blocks if remains(program, block)]
    return program.outputs == (program.blocks[-1].name,) and all(name in known for name in remaining)


def _factors(block: Block) -> list[Any] | None:
    """Return the two loads whose product is summed, of some or all elements; None for any other sum."""
    value = block.store.value
    product = value.b if isinstance(value, tirx.Add) else None
    if isinstance(product, tirx.Select):
        product = product.true_value
    if not isinstance(product, tirx.Mul):
        return None
    loads = [product.a, product.b]
    loads = [factor.value if isinstance(factor, tirx.Cast) else factor for factor in loads]
    if not all(isinstance(load, tvm.ir.TensorLoad) for load in loads) or loads[0].source.same_as(loads[1].source):
        return None
    return loads


def _is_image(load: Any) -> bool:
    """Return whether a load has an index that is more than a variable."""
    return not all(isinstance(index, tvm.ir.Var | tirx.IntImm) for index in load.indices)


def _prepared(program: AnalysedProgram, loads: tuple[Any, ...]) -> list[str]:
    """Return the names of the blocks that write what is loaded, but those that only copy."""
    writers = [b for b in program.blocks if any(b.store.buffer.same_as(load.source) for load in loads)]
    return [block.name for block in writers if not isinstance(block.store.value, tvm.ir.TensorLoad)]


def _group(image: Any, channel: Any, channels: int) -> int | None:
    """Return how many neighbouring channels read the same elements; None if it is one, or of no known form."""
    indices = [index for index in image.indices if contains(index, channel)]
    if not indices:
        return channels
    divisions = [node for index in indices for node in found(index, tirx.FloorDiv) if is_var(node.a, channel)]
    uses = [var for index in indices for var in variables(index) if is_var(var, channel)]
    sizes = {int(node.b) for node in divisions if isinstance(node.b, tirx.IntImm)}
    return sizes.pop() if len(divisions) == len(uses) and len(sizes) == 1 else None


def contains(index: Any, var: Any) -> bool:
    return any(is_var(other, var) for other in variables(index))


def _uses(load: Any, var: Any) -> bool:
    return any(contains(index, var) for index in load.indices)


def coefficient(index: Any, var: Any) -> int | None:
    """Return the factor of a variable in an index; None if the index is not linear in it."""
    factors = detect_linear_equation(index, [var])
    return int(factors[0]) if len(factors) and isinstance(factors[0], tirx.IntImm) else None
