"""The libraries of JAX's ecosystem over xlamini: an environment, programs, and the values that JAX gave."""
