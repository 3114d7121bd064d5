"""Decisions by races on the fleet: gates, rechecks, and the sequential test that ends a race."""
