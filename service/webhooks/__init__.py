"""Webhooks: notify other systems of events."""
