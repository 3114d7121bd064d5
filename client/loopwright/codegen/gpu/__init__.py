"""Parts of generated code for GPUs: tensor cores, TF32, asynchronous copies, shared memory."""
