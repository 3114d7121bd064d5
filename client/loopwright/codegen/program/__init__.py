"""From a model's module to a built program: lowering, digest, applying a trace, proof of bounds, building."""
