"""Proposing candidates: sampling, mutation, crossover, evolution."""
