"""Cost models: features of scheduled programs, and the models that rank programs by them."""
