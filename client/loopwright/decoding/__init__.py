"""Decoding with causal language models of ``transformers``: one program for all lengths, over a cache of fixed size."""

PROMPT_LENGTHS = (64,)
"""The lengths of prompts for which a decoder has a program by default, in tokens. Not tuned."""
