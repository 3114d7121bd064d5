"""The tuning database at a million trials: what its size is, and how long each question to it takes."""
