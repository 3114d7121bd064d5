"""Shared by rules: the parts of a function that they recognise, and steps of schedules. Imports no rule."""
