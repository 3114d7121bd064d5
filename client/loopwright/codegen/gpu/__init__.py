"""What generated code for GPUs uses: tensor cores, TF32, asynchronous copies, shared memory."""
