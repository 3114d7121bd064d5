"""Rules for CPUs, one a file."""
