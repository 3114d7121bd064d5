"""Records and bests: what is known, and its way in and out as TVM's JSON pair."""
