"""Programs that show Loopwright from a model to code that runs; see README.md."""
