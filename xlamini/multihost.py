"""Values shared between processes: barriers, broadcasts, gathers, and arrays of one process or of all."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.transforms.sharding.multihost import assert_equal as assert_equal
from xlamini.transforms.sharding.multihost import broadcast_one_to_all as broadcast_one_to_all
from xlamini.transforms.sharding.multihost import global_array_to_host_local_array as global_array_to_host_local_array
from xlamini.transforms.sharding.multihost import host_local_array_to_global_array as host_local_array_to_global_array
from xlamini.transforms.sharding.multihost import process_allgather as process_allgather
from xlamini.transforms.sharding.multihost import sync_global_devices as sync_global_devices

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "sync_global_devices",
]

_edge_of_face(globals())
