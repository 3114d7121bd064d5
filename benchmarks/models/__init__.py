"""Which architectures of the `transformers` library are taken, agree with PyTorch, and are tuned."""
