"""How good the first choices of the rules are, and how long an instant answer takes."""
