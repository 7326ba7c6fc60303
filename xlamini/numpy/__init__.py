"""NumPy on xlamini: the functions JAX users know as `jax.numpy`."""
