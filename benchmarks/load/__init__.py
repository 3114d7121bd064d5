"""The API under load: mixed reads at a fixed rate beside running jobs, event streams and half-open connections."""
