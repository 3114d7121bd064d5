"""Decoding with causal language models of ``transformers``: one program for all lengths, over a cache of fixed size."""
