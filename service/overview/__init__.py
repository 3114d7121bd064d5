"""Everything at a glance: the overview, and the leaderboard of bests."""
