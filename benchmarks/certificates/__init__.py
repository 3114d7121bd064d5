"""Repeatability of certificates: the same programs are certified again, later and under load."""
