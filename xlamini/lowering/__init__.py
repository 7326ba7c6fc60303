"""Lowering from jaxpr to StableHLO: types, locations, the module builder, the loop over equations. Private.

`module.lower_jaxpr` is the entry point. The rules of primitives get a `Context` (context.py) and never import MLIR
themselves, so that importing xlamini does not load the MLIR bindings; the first lowering does.
"""
