"""`jax._src.compilation_cache`: whether programs are cached on disk."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.config import config

__getattr__ = fall_through(__name__)


def is_persistent_cache_enabled() -> bool:
    """Whether there is a directory of compiled programs."""
    return bool(config.enable_compilation_cache and config.compilation_cache_dir)
