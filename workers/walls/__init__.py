"""Walls around processes that handle submitted data: their levels, and how to set them up."""
