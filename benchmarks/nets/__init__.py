"""Whole nets at full size, as a user compiles, calls and deploys them, beside other engines."""
