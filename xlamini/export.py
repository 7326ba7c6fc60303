"""Functions as StableHLO that can be kept, run on platforms that are not here, and called again by later versions.

>>> exported = export(xlamini.jit(lambda x: x * 2), platforms=("cpu", "cuda", "tpu"))(1.0)
>>> deserialize(exported.serialize()).call(21.0)
Array(42., dtype=float32, weak_type=True)
"""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.staging.aot.trees import register_namedtuple_serialization as register_namedtuple_serialization
from xlamini.staging.aot.trees import register_pytree_node_serialization as register_pytree_node_serialization
from xlamini.transforms.export.artifact import CALLING_CONVENTION as maximum_supported_calling_convention_version
from xlamini.transforms.export.artifact import Exported as Exported
from xlamini.transforms.export.artifact_file import LEAST_CONVENTION as minimum_supported_calling_convention_version
from xlamini.transforms.export.artifact_file import deserialize as deserialize
from xlamini.transforms.export.export import default_export_platform as default_export_platform
from xlamini.transforms.export.export import export as export
from xlamini.transforms.export.safety import DisabledSafetyCheck as DisabledSafetyCheck
from xlamini.transforms.export.symbolic import SymbolicScope as SymbolicScope
from xlamini.transforms.export.symbolic import is_symbolic_dim as is_symbolic_dim
from xlamini.transforms.export.symbolic import symbolic_args_specs as symbolic_args_specs
from xlamini.transforms.export.symbolic import symbolic_shape as symbolic_shape

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_shape",
]

_edge_of_face(globals())
