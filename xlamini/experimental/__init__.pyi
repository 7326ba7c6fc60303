# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.experimental import (
    array_serialization as array_serialization, buffer_callback as buffer_callback, checkify as checkify,
    colocated_python as colocated_python, compilation_cache as compilation_cache,
    custom_partitioning as custom_partitioning, hijax as hijax, jet as jet, key_reuse as key_reuse, layout as layout,
    mesh_utils as mesh_utils, multihost_utils as multihost_utils, ode as ode, pallas as pallas, random as random,
    rnn as rnn, scheduling_groups as scheduling_groups, serialize_executable as serialize_executable,
    shard_map as shard_map, sparse as sparse, topologies as topologies, xla_metadata as xla_metadata,
)
from xlamini.experimental.hijax.boxes import cur_qdd as cur_qdd
from xlamini.transforms.callbacks.io_callback import io_callback as io_callback
