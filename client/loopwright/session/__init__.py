"""The connection to a service: address, token, HTTP, and what admins do with it."""
