"""Compiling a model against databases of different sizes: one lookup request, and the time it takes."""
