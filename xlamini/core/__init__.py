"""Private: the language. Types, programs, primitives and the tracer; nothing here compiles or runs."""

# ruff: noqa: E402
from xlamini.core import requirements as _requirements

_requirements.check()

from xlamini.core.caching.call_cache import inline_cached
from xlamini.core.caching.memo import OwnedMemo, memoised, paused_gc
from xlamini.core.dtypes import (
    ExtendedDType,
    as_dtype,
    canonicalize_dtype,
    check_user_dtype,
    finfo,
    float0,
    iinfo,
    issubdtype,
    itemsize_bits,
    result_type,
    scalar_type_of,
)
from xlamini.core.errors import (
    ConcretizationTypeError,
    MissingRule,
    PlatformError,
    ProcessError,
    ShapeError,
    ShardingError,
    TracerArrayConversionError,
)
from xlamini.core.errors.api_boundary import api_boundary_methods, trim
from xlamini.core.errors.file_errors import LoadError
from xlamini.core.errors.frames import user_stacklevel
from xlamini.core.flags.config import disable_jit, enable_x64
from xlamini.core.program.avals import Avals, Dims, Params, Shape, ShapedArray, Values, has_shape_and_dtype
from xlamini.core.program.effects import Effects, any_ordered
from xlamini.core.program.evaluation import eval_jaxpr, jaxpr_as_fun
from xlamini.core.program.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var, close_over, once, subjaxprs
from xlamini.core.program.named_axes import manual_axis, named_axis
from xlamini.core.program.primitive import ELEMENTWISE, PURE, REMATERIALIZABLE, Axis, CallLike, Cost, Primitive
from xlamini.core.program.ref_cells import Cell, Holder, flatten_call
from xlamini.core.program.rewriting import rewrite
from xlamini.core.program.tangents import Zero, cotangent_aval, is_differentiable, is_linear, is_zero, tangent_aval
from xlamini.core.pytree import (
    PyTreeDef,
    example_of,
    first_difference,
    flatten,
    flatten_from_user,
    keystr,
    register_pytree_node,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_unflatten,
    treedef_children,
    unflatten,
)
from xlamini.core.pytree.prefix import flatten_axes
from xlamini.core.sharding.abstract_mesh import AbstractMesh, AxisType
from xlamini.core.sharding.aval_sharding import AvalSharding, split_into
from xlamini.core.sharding.factors import Factors, alike, apart, dims, in_front, reducing
from xlamini.core.sharding.partition_spec import PartitionSpec
from xlamini.core.tracing.concretization import UnknownValue, value_of
from xlamini.core.tracing.tracer import Builder, Tracer, active, aval_of, leaked, literal
