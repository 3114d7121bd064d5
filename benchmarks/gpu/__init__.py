"""The whole service on an NVIDIA GPU, beside PyTorch: ``scripts/gpu-check``."""
