"""Connections, the queue of writers, clocks, outages, column types and paging, for both databases."""
