"""The next token from the logits of a model."""

from __future__ import annotations

from typing import Any

import numpy as np


def next_token(logits: Any, temperature: float, top_p: float, generator: np.random.Generator) -> int:
    """Return a token: the likeliest at a temperature of 0, else one drawn from the nucleus.

    Args:
        logits: an array ``[vocabulary]``.
        temperature: divides the logits, so that a lower one prefers likely tokens.
        top_p: tokens are drawn from the likeliest ones whose probabilities add up to this (nucleus sampling,
            Holtzman et al., 2020).
        generator: makes the random numbers.
    """
    if temperature == 0:
        return int(np.argmax(logits))
    scaled = np.asarray(logits, dtype="float64") / temperature
    probabilities = np.exp(scaled - scaled.max())
    probabilities /= probabilities.sum()
    order = np.argsort(-probabilities, kind="stable")
    sums = np.cumsum(probabilities[order])
    nucleus = order[: int(np.searchsorted(sums, top_p)) + 1]
    weights = probabilities[nucleus]
    return int(generator.choice(nucleus, p=weights / weights.sum()))
