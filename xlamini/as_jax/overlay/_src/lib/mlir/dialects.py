"""`jax._src.lib.mlir.dialects`: the operations that a lowering rule writes."""

from jaxlib.mlir.dialects import chlo as chlo, func as func, stablehlo as hlo, stablehlo as stablehlo

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)
