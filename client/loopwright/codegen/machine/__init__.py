"""What this machine's processor is, and what it can do. Needs TVM."""
