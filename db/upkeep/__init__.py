"""Backups, rights of the service's role, and figures for monitoring."""
