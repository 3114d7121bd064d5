"""Records and bests, and their import and export as TVM's JSON pair."""
