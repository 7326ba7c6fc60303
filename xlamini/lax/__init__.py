"""The operations that programs are made of, under the names JAX users know as `jax.lax`."""

# ruff: noqa: F401
from xlamini.primitives.arithmetic import add, div, integer_pow, max, min, mul, neg, sub
from xlamini.primitives.comparison import eq, ge, gt, le, lt, ne
from xlamini.primitives.exponential import exp, log, tanh
from xlamini.primitives.select import select_n
from xlamini.primitives.shape import broadcast, broadcast_in_dim, expand_dims, reshape, rev, squeeze, transpose
from xlamini.primitives.trigonometric import cos, sin
