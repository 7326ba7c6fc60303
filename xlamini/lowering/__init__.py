"""Private: from jaxpr to StableHLO. Types, locations, the module builder, the walk over equations.

`module.lower_jaxpr` is the entry point. The rules of the primitives get a `Context` (context.py) and never import MLIR
themselves, so that importing xlamini does not load the MLIR bindings; the first lowering does.
"""
