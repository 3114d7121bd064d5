"""What generated code for CPUs uses: tensor intrinsics and vector math."""
