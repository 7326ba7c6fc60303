"""`jax._src.traceback_util`: frames that are not the user's."""

from types import FrameType

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.api_boundary import api_boundary as api_boundary
from xlamini.core.frames import hidden_files, hide_file as register_exclusion, is_hidden

__getattr__ = fall_through(__name__)

_exclude_paths = hidden_files.prefixes


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's."""
    return not is_hidden(frame)
