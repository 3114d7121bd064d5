"""Workloads: the functions that the database knows."""
