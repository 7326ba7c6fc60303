"""Shardings: meshes of devices, and how arrays are split over them."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.core.sharding.abstract_mesh import AbstractDevice as AbstractDevice
from xlamini.core.sharding.abstract_mesh import AbstractMesh as AbstractMesh
from xlamini.core.sharding.abstract_mesh import AxisType as AxisType
from xlamini.core.sharding.abstract_mesh import ManualAxisType as ManualAxisType
from xlamini.core.sharding.partition_spec import PartitionSpec as PartitionSpec
from xlamini.runtime.meshes.current_mesh import get_abstract_mesh as get_abstract_mesh
from xlamini.runtime.meshes.current_mesh import get_mesh as get_mesh
from xlamini.runtime.meshes.current_mesh import set_mesh as set_mesh
from xlamini.runtime.meshes.current_mesh import use_abstract_mesh as use_abstract_mesh
from xlamini.runtime.meshes.mesh import Mesh as Mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding as NamedSharding
from xlamini.runtime.sharding import Sharding as Sharding
from xlamini.runtime.sharding import SingleDeviceSharding as SingleDeviceSharding
from xlamini.runtime.sharding import make_single_device_sharding as make_single_device_sharding
from xlamini.transforms.sharding.axis_types import auto_axes as auto_axes
from xlamini.transforms.sharding.axis_types import explicit_axes as explicit_axes
from xlamini.transforms.sharding.constraint import reshard as reshard

_edge_of_face(globals())
