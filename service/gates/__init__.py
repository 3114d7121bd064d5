"""Gates: whether a job's model became slower than a reference."""
