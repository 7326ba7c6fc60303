"""What a type checker sees of jaxlib's classes that the core's types name.

jaxlib's compiled modules have no stubs in its wheel. A public type that named such a class would be unknown to users'
type checkers, and so would every type that names that type.
"""

from __future__ import annotations

from jaxlib._jax import JaxRuntimeError as JaxRuntimeError
from jaxlib._jax.config import Config as Config
from jaxlib._jax.pytree import (
    DictKey as DictKey,
    FlattenedIndexKey as FlattenedIndexKey,
    GetAttrKey as GetAttrKey,
    PyTreeDef as PyTreeDef,
    PyTreeRegistry as PyTreeRegistry,
    SequenceKey as SequenceKey,
)
