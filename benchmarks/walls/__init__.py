"""What walls cost: measured latencies, trials a second and searching, at each level beside none."""
