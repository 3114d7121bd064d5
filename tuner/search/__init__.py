"""The search of one task: proposers of programs, a surrogate model that ranks them, and the population they share."""
