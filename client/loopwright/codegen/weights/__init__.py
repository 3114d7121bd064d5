"""Weights: taken out of a module, put back, and packed once before the calls."""
