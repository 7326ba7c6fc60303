"""`jax.linear_util`, where libraries for older versions of JAX look for `jax.extend.linear_util`."""

from xlamini.as_jax.overlay.extend.linear_util import (
    Store as Store,
    WrappedFun as WrappedFun,
    transformation as transformation,
    transformation2 as transformation2,
    transformation_with_aux as transformation_with_aux,
    wrap_init as wrap_init,
)
