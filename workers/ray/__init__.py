"""The fleet on Ray: cluster, actors, and how jobs share them."""
