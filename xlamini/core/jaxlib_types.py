"""What a type checker sees of jaxlib's classes that the core's types name.

jaxlib's compiled modules have no stubs in its wheel. A public type that named such a class would be unknown to users'
type checkers, and so would every type that names that type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    class Compiled:
        """An object of a compiled class, whose attributes jaxlib or Python sets; those not declared have any type."""

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    class Config(Compiled):
        """A cell of configuration that C++ dispatch reads."""

        name: str
        value: Any

        def set_global(self, value: Any) -> None: ...
        def set_local(self, value: Any) -> None: ...
        def swap_local(self, value: Any) -> Any: ...

    class JaxRuntimeError(RuntimeError): ...

else:
    from jaxlib._jax import JaxRuntimeError as JaxRuntimeError
    from jaxlib._jax.config import Config as Config
