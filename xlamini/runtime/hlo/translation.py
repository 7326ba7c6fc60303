"""Translation of an uncompiled StableHLO module to HLO, the language of XLA's compiler."""
from __future__ import annotations

from typing import Any

from jaxlib import _jax
from jaxlib._hlo import HloModule, HloPrintOptions, XlaComputation, hlo_module_from_text

from xlamini.runtime.devices.platforms import client


def hlo_of(module: Any) -> XlaComputation:
    """The HLO computation of an `ir.Module`."""
    text = module.operation.get_asm(enable_debug_info=True)
    return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)


def hlo_text(module: Any, debug_info: bool) -> str:
    """The computation as text; `debug_info` adds names and lines of the user's program."""
    options = HloPrintOptions.short_parsable()
    options.print_metadata = debug_info
    return hlo_of(module).get_hlo_module().to_string(options)


def hlo_cost(module: Any) -> dict[str, float]:
    """XLA's cost estimate of the unoptimized program: `flops`, `bytes accessed`, …; a loop's body counts once.

    The CPU's client counts programs of all platforms, as plugins have no estimate.
    """
    return _jax.hlo_module_cost_analysis(client("cpu"), hlo_of(module).as_hlo_module())


def text_cost(text: str) -> dict[str, float]:
    """XLA's generic cost estimate of a module's text, as `optimized_cost`; an error of XLA's if it is no module."""
    return _jax.hlo_module_cost_analysis(client("cpu"), hlo_module_from_text(text))


def optimized_cost(executable: Any) -> dict[str, float]:
    """XLA's generic cost estimate of an optimized program of any platform; custom kernels count zero."""
    modules = [_jax.hlo_module_cost_analysis(client("cpu"), module) for module in executable.hlo_modules()]
    return {name: sum(cost.get(name, 0.0) for cost in modules) for name in {n for cost in modules for n in cost}}


def text_of_proto(proto: bytes) -> str:
    """The text of a serialized `HloModuleProto`; RuntimeError if this version of XLA cannot read it."""
    return HloModule.from_serialized_hlo_module_proto(proto).to_string()
