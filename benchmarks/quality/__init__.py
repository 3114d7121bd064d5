"""Code from `Client.compile` beside what users would run instead: PyTorch, ONNX Runtime and OpenVINO, on x86."""
