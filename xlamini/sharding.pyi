# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.core.sharding.abstract_mesh import (
    AbstractDevice as AbstractDevice, AbstractMesh as AbstractMesh, AxisType as AxisType,
    ManualAxisType as ManualAxisType,
)
from xlamini.core.sharding.forbidden import no_collectives as no_collectives
from xlamini.core.sharding.partition_spec import PartitionSpec as PartitionSpec, UnreducedKind as UnreducedKind
from xlamini.runtime.meshes.current_mesh import (
    get_abstract_mesh as get_abstract_mesh, get_mesh as get_mesh, set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from xlamini.runtime.meshes.mesh import Mesh as Mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding as NamedSharding
from xlamini.runtime.sharding import (
    make_single_device_sharding as make_single_device_sharding, Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
from xlamini.transforms.sharding.axis_types import auto_axes as auto_axes, explicit_axes as explicit_axes
from xlamini.transforms.sharding.constraint import reshard as reshard
