"""`jax._src.state.types`: the types of refs."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.ref_cells import AbstractRef as AbstractRef
from xlamini.numpy.ref_views import TransformedRef as TransformedRef

__getattr__ = fall_through(__name__)
