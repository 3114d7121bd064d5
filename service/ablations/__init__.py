"""Ablations: which of the decisions of a schedule make it fast, by races with its neighbours."""

MOST = 28
"""Neighbours of a program: four races. Not tuned."""
