"""Calls of jaxprs: the base of all higher-order primitives, the primitive `jit`, and the rules of calls."""
