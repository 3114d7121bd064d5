"""Regression check of the search: another commit's code against this checkout's, interleaved."""
