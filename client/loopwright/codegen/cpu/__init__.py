"""Parts of generated code for CPUs: tensor intrinsics and vector math."""
