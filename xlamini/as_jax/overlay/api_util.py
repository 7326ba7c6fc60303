"""`jax.api_util`: calls as flat leaves."""

from collections.abc import Generator
from typing import Any, Final

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay._src.util import safe_map as safe_map
from xlamini.as_jax.overlay.extend.linear_util import transformation_with_aux
from xlamini.core.program.debug_info import DebugInfo as DebugInfo
from xlamini.core.pytree import PyTreeDef, flatten, unflatten

__getattr__: Final = fall_through(__name__)


def debug_info(traced_for: str, fun: Any, args: Any, kwargs: Any, **more: Any) -> DebugInfo:
    """What `linear_util.wrap_init` takes; equations have the user's lines without it."""
    return DebugInfo(traced_for, getattr(fun, "__name__", repr(fun)))


@transformation_with_aux
def flatten_fun(in_tree: PyTreeDef, *leaves: Any) -> Generator[Any, Any, None]:
    """The function of the leaves of (args, kwargs), and the structure of what it returned."""
    args, kwargs = unflatten(in_tree, leaves)
    out = yield args, kwargs
    yield flatten(out)


@transformation_with_aux
def flatten_fun_nokwargs(in_tree: PyTreeDef, *leaves: Any) -> Generator[Any, Any, None]:
    """The function of the leaves of its positional arguments, and the structure of what it returned."""
    out = yield unflatten(in_tree, leaves), {}
    yield flatten(out)
