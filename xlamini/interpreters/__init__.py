"""Private: the rewrites. Jaxpr in, jaxpr out, one loop over equations in each file; none names a primitive."""
