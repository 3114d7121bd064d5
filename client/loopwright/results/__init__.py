"""Results as users hold them: bests, comparisons, records, and their tables."""
