"""Private: the transformations behind the public API (grad, vmap, scan, cond and others), with their primitives."""
