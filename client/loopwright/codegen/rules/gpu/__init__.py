"""Rules for GPUs, one a file. All but DLight's are experimental: no program of theirs was timed on a GPU."""
