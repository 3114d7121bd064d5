"""A tuned model as a folder that runs, and proves itself, where neither Loopwright nor TVM's compiler is installed."""
