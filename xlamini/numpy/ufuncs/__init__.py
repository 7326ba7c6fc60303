"""NumPy's universal functions: how one is declared, the class `jnp.ufunc`, and the table of all of them."""
