"""Portfolios of shapes: for which extents a model is tuned."""
