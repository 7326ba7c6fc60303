"""`jax.extend.mlir`: jaxlib's bindings of MLIR."""

from jaxlib.mlir import ir as ir

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)
