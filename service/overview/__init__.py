"""Endpoints of the overview and of the leaderboard of bests."""
