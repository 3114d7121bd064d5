"""The service of this machine, as its user's client starts, finds and stops it. Linux only."""
