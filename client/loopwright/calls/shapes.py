"""Calls about models with many values of an extent."""

from __future__ import annotations

from typing import Any, Unpack

from loopwright.calls.connection import Connection
from loopwright.extras import require_tvm
from loopwright.model import OtherOptions, Shapes, as_model
from loopwright.shapes.plan import BUCKET_PRICE, MAX_BUCKETS, Portfolio


class ShapeCalls(Connection):
    """Which extents a model is compiled for."""

    last_plan: Portfolio | None = None
    """The buckets of the last `plan_shapes`, or of the last `submit` or `compile` with ranges of shapes."""

    def plan_shapes(
        self,
        model: Any,
        shapes: Shapes | None = None,
        *,
        max_buckets: int = MAX_BUCKETS,
        bucket_price: float = BUCKET_PRICE,
        **options: Unpack[OtherOptions],
    ) -> Portfolio:
        """Choose the buckets of a model that is called with many extents, without a request to the service.

        `submit` and `compile` take the portfolio as ``shapes``, or choose it themselves. Calls can be padded if the
        model computes each sample of its results from the same sample of its inputs alone.

        Args:
            model: as for `submit`.
            shapes: the extents and their weights, as `loopwright.plan_shapes` takes them; by default, those of the
                `Model`.
            max_buckets: maximum number of buckets.
            bucket_price: the least that one more bucket must save, as a fraction of the time without padding.
            options: the options of a plain model, as for `submit`.

        Raises:
            ValueError: ``shapes`` does not give many values of one extent.
            InvalidModule: the model has no Relax function with the symbolic extent.
        """
        require_tvm()
        from loopwright.compiler import plan

        source = as_model(model, **options) if shapes is None else as_model(model, shapes=shapes, **options)
        self.last_plan = plan(source, max_buckets=max_buckets, bucket_price=bucket_price)
        return self.last_plan
