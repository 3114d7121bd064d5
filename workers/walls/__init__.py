"""Walls around the processes that touch what a user sent: how strong they are, and how to put them up."""
