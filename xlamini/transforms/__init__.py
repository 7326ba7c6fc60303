"""What users call: jit, grad, vmap and the rest, each with its higher-order primitive if it has one."""
