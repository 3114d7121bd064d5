"""Users and tokens as users see them, and what requests pass before any endpoint."""
