"""Endpoints of the overview and of the list of best schedules."""
