"""`jax.experimental.colocated_python.serialization`, whose functions orbax-checkpoint replaces by its own."""

import xlamini.as_jax.overlay._src.xla_bridge as xb
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refusing
from xlamini.runtime.sharding import DeviceList as DeviceList

__getattr__ = fall_through(__name__)

_INSTEAD = "there are no remote hosts to send a sharding to"
_get_cpu_device_map = refusing("_get_cpu_device_map", _INSTEAD)
_reduce_mesh = refusing("_reduce_mesh", _INSTEAD)
_reduce_device_list = refusing("_reduce_device_list", _INSTEAD)
_reduce_single_device_sharding = refusing("_reduce_single_device_sharding", _INSTEAD)
