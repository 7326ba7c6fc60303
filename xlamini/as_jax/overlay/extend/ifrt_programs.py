"""`jax.extend.ifrt_programs`: programs of plugins of remote runtimes, of which there are none."""
from __future__ import annotations

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refusing

__getattr__ = fall_through(__name__)


class ifrt_programs:
    """The functions of jaxlib's module of this name."""

    make_plugin_program = staticmethod(refusing("make_plugin_program", "there is no remote runtime"))
    make_plugin_compile_options = staticmethod(refusing("make_plugin_compile_options", "there is no remote runtime"))
