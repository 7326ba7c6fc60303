"""`jax.experimental.array_serialization.serialization`: its names, for libraries that mention them in types."""
from __future__ import annotations

from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refuse, refusing

__getattr__ = fall_through(__name__)

_INSTEAD = "save with experimental.array_serialization.pytree_serialization, or with orbax-checkpoint"
get_tensorstore_spec = refusing("get_tensorstore_spec", _INSTEAD)


class GlobalAsyncCheckpointManagerBase:
    """The base class of managers of checkpoints; libraries derive theirs from it."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """JAX's own manager, which there is not."""

    def __init__(self, *args: Any, **kwargs: Any):
        refuse("GlobalAsyncCheckpointManager", _INSTEAD)
