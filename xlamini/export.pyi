# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.export.export import default_export_platform as default_export_platform, export as export
from xlamini.transforms.export.artifact import Exported as Exported
from xlamini.transforms.export.artifact import (
    deserialize as deserialize,
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from xlamini.transforms.export.jax_writing import serialize_for_jax as serialize_for_jax
from xlamini.transforms.export.safety import DisabledSafetyCheck as DisabledSafetyCheck
from xlamini.transforms.export.symbolic import (
    is_symbolic_dim as is_symbolic_dim, symbolic_args_specs as symbolic_args_specs, symbolic_shape as symbolic_shape,
    SymbolicScope as SymbolicScope,
)
from xlamini.staging.aot.treedef_json import (
    register_namedtuple_serialization as register_namedtuple_serialization,
    register_pytree_node_serialization as register_pytree_node_serialization,
)
