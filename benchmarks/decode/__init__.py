"""A decoder beside other engines: tokens per second, time to the first token, and memory."""
