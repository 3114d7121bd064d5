"""Webhooks: telling other systems of what happens here."""
