"""The rewrites: jaxpr in, jaxpr out, one loop over equations in each file. None of them names a primitive."""
