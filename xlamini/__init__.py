"""xlamini: see, trust and change what happens between your Python and the machine.

A Python function on arrays is traced once into a jaxpr; every transformation is a function from jaxpr to jaxpr; the
final jaxpr becomes StableHLO, and PJRT runs it. `import xlamini as jax` reads naturally: names, arguments and meanings
are JAX's.
"""

# ruff: noqa: E402, I001
from xlamini.runtime.versions import check_jaxlib, warn_of_jax

check_jaxlib()
warn_of_jax()

from xlamini.core import paused_gc as _paused_gc

with _paused_gc():  # imports make no garbage, and collecting it would take a tenth of their time
    from xlamini.core.stubs import attach_stub as _attach_stub
    from xlamini.transforms import install_hooks as _start
    from xlamini import numpy as numpy

from importlib import import_module as _import_module
from xlamini.core import hooks as _hooks
from xlamini.core.flags.jax_flags import warn_of_environment as _warn_of_environment
from xlamini.core.former_paths import install as _install

_hooks.install(library_kernels=lambda name: _import_module(f"xlamini.nn.kernels.{name}"))
_warn_of_environment()
_install()
__getattr__, __dir__, __all__ = _attach_stub(__name__)
