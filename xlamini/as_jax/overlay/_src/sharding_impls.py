"""`jax._src.sharding_impls`: jaxlib takes the sharding of one device from here when it hands out an array's shards."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.runtime.sharding import make_single_device_sharding as make_single_device_sharding

__getattr__ = fall_through(__name__, "xlamini.sharding")
