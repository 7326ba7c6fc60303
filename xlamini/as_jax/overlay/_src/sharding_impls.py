"""`jax._src.sharding_impls`: what is not made here of XLA's own descriptions of shardings."""

from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refuse, refusing
from xlamini.sharding import Sharding

__getattr__ = fall_through(__name__)

_INSTEAD = "arrays say by NamedSharding where they lie"


class GSPMDSharding(Sharding):
    """A sharding made of XLA's description of one; no array here has it."""

    def __init__(self, *args: Any, **kwargs: Any):
        refuse("GSPMDSharding", _INSTEAD)


parse_flatten_op_sharding = refusing("parse_flatten_op_sharding", _INSTEAD)
