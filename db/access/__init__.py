"""Users, tokens, limits, audit, visibility and webhooks."""
