"""Ablations: which of the decisions of a schedule make it fast, by races with its neighbours."""
