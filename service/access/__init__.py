"""Endpoints of users and tokens, and the middleware that each request passes before its endpoint."""
