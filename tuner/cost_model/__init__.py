"""Which candidates are worth measuring: features of a scheduled program, and the model that ranks them."""
