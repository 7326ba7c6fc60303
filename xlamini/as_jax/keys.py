"""Primitives of JAX's that no program of xlamini has: keys of the tables that libraries keep, without rules."""

from xlamini.core.primitive import Primitive

call_p, closed_call_p = Primitive("call"), Primitive("closed_call")
get_p, swap_p = Primitive("get"), Primitive("swap")
empty2_p, ragged_all_to_all_p = Primitive("empty2"), Primitive("ragged_all_to_all")
