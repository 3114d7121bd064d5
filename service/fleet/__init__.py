"""The fleet as users see it: workers, and the targets they offer."""
