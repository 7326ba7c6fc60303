"""xlamini: see, trust and change what happens between your Python and the machine.

A Python function on arrays is traced once into a jaxpr; every transformation is a function from jaxpr to jaxpr; the
final jaxpr becomes StableHLO, and PJRT runs it. `import xlamini as jax` reads naturally: names, arguments and meanings
are JAX's.

    import xlamini
    import xlamini.numpy as jnp

    def loss(w, x, y):
        return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

    step = xlamini.jit(lambda w, x, y: w - 0.1 * xlamini.grad(loss)(w, x, y))
    print(step(jnp.ones(3), jnp.eye(3), jnp.zeros(3)))

The doors:

- transformations: `jit`, `grad`, `value_and_grad`, `vmap`, `jvp`, `vjp`, `jacobian`, `hessian`, `checkpoint`,
  `custom_vjp`, `shard_map`
- arrays: `numpy`, `scipy`, `random`, `nn`, `image`; `tree` for containers of them
- control flow: `lax.cond`, `lax.scan`, `lax.while_loop`, `lax.fori_loop`, `lax.map`
- looking at programs: `inspect`, `make_jaxpr`, `lint`, `checked`, `debug`, `profiler`, `errors`
- devices: `devices`, `device_put`, `make_mesh`, `sharding`, `distributed`; `python -m xlamini doctor`
- files: `export`, `load`, `cache`
- more: `extend` for operations of one's own, `experimental.pallas` for kernels, `config` for flags
"""

# ruff: noqa: I001
from xlamini.core import paused_gc as _paused_gc

with _paused_gc():  # imports make no garbage, and collecting it would take a tenth of their time
    from xlamini.core.stubs import attach_stub as _attach_stub
    from xlamini.transforms import install_hooks as _start
    from xlamini import numpy as numpy

from importlib import import_module as _import_module
from xlamini.core import hooks as _hooks
from xlamini.core.flags.jax_flags import warn_of_environment as _warn_of_environment
from xlamini.core.former_paths import install as _install

_hooks.install(
    library_kernels=lambda name: _import_module(f"xlamini.nn.kernels.{name}"),
    time_report=lambda *args: _import_module("xlamini.inspection.timing.report").time_report(*args),
    read_trace=lambda where: _import_module("xlamini.inspection.timing.report").read_trace(where),
)
_warn_of_environment()
_install()
__getattr__, __dir__, __all__ = _attach_stub(__name__)
