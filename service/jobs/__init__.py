"""Jobs: submission, progress, events."""
