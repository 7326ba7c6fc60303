"""Kernels of one's own in a compiled program: their modules, and what the target's compiler made of them."""
