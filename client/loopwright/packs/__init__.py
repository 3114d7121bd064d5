"""Packs: certified bests as one signed file, from one service to others."""
