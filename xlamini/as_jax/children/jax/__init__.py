"""jax, answered by xlamini; see docs/dropin.md of xlamini. The wheel called `jax` has this file, too."""

__xlamini__ = "this package turns the answer on"  # so that it is not taken for JAX

import xlamini.as_jax
