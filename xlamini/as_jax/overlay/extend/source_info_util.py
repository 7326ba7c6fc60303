"""`jax.extend.source_info_util`: the user's line of an equation."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.frames import hide_file as register_exclusion
from xlamini.core.jaxpr import Provenance

__getattr__ = fall_through(__name__)


def summarize(source_info: Provenance) -> str:
    """The user's line of an equation, and the rewrites that led to it."""
    return source_info.describe()
