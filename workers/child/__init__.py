"""Warm children and their forks: the protocol that assumes a hostile fork. Imports no Ray."""
