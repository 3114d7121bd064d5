"""The host that programs run on: its lock, its threads, and folders of one user."""
