"""`pallas_call`: a function that runs a kernel of one's own."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xlamini.core import ShapedArray, flatten, flatten_from_user, hooks
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.kernels import CostEstimate, Kernel
from xlamini.core.program.ref_types import AbstractRef
from xlamini.core.pytree import structure
from xlamini.interpreters.discharge import written
from xlamini.staging import ArgNames, avals_of, check_callable, name_of, rebuilt
from xlamini.transforms.pallas.arguments import (
    alias_pairs,
    check_aliases,
    check_operands,
    check_prefetch,
    grid_sizes,
    grid_spec_of,
    result_types,
    scratch_types,
    specs_of,
)
from xlamini.transforms.pallas.options import checked_options
from xlamini.transforms.pallas.primitive import pallas_call_p
from xlamini.transforms.pallas.specs import GridSpec, no_block_spec
from xlamini.transforms.pallas.trace import Operands, block_of, block_ref, names_of_refs, trace_kernel


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: int | Sequence[int] = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: CostEstimate | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Callable[..., Any]:
    """A function of arrays that runs `kernel` once for each point of `grid`, on blocks of the arrays.

    Args:
      kernel: takes the refs of blocks of the operands, of the results, then of scratch memory; it writes the results.
      out_shape: the shapes and dtypes of the results, a `ShapeDtypeStruct` or a container of them.
      grid_spec: grid, specs and scratch memory in one, instead of the next four.
      grid: the number of programs along each axis. Programs run in order, the last axis fastest, on a TPU and on the
        CPU; on a GPU they run at the same time.
      in_specs, out_specs: a `BlockSpec` for each operand and result; by default each program sees the whole array.
      scratch_shapes: buffers of a kernel's own, such as `pallas.tpu.VMEM((8, 128), "float32")`.
      input_output_aliases: `{operand: result}`: the result starts with the operand's value, and takes its memory.
      interpret: True runs the scan over the grid on every platform; `InterpretParams()` runs the programs one by one on
        the CPU, and finds mistakes that a target would hide: KernelCheckError.
      name: the kernel's name, by default that of the function.
      compiler_params: of the target, `pallas.tpu.CompilerParams` or `pallas.triton.CompilerParams`.
      cost_estimate: what a call costs, for the compiler.
      debug, metadata: accepted for compatibility, and ignored.

    An element that no program writes is undefined (0 on the CPU), and so is what a block has beyond the end of its
    array. Derivatives are those of the scan over the grid, unless a `custom_vjp` says otherwise.

    Raises TypeError for a kernel that closes over an array or writes to an operand, ShapeError for a block of another
    rank.

    >>> def double(x, o):
    ...     o[...] = 2 * x[...]
    >>> rows, out = pl.BlockSpec((2, 4), lambda i: (i, 0)), xlamini.ShapeDtypeStruct((4, 4), "float32")
    >>> call = pallas_call(double, out, grid=2, in_specs=[rows], out_specs=rows)
    >>> call(jnp.ones((4, 4))).sum()
    Array(32., dtype=float32)
    """
    check_callable("pallas_call: kernel", kernel)
    spec = grid_spec_of(grid_spec, grid, in_specs, out_specs, scratch_shapes)
    out_shape = tuple(out_shape) if isinstance(out_shape, list) else out_shape
    options = checked_options(
        name=name or name_of(kernel),
        grid=grid_sizes(spec.grid),
        aliases=alias_pairs(input_output_aliases),
        interpret=interpret,
        compiler_params=compiler_params,
        cost_estimate=cost_estimate,
    )

    @api_boundary
    def call(*args: Any) -> Any:
        leaves, in_tree = flatten_from_user((args, {}))
        avals = avals_of(leaves, ArgNames(kernel, in_tree), options["name"])
        axes = frozenset[Any]().union(*(a.vma for a in avals))
        operands = [hooks.cast_varying(x, axes) for x in leaves] if axes else leaves
        typed = [a.varying(axes) for a in avals]
        made, out_tree = _kernel(kernel, args, typed, out_shape, spec, options)
        return rebuilt(out_tree, pallas_call_p.bind(*operands, kernel=made))

    return call


def _kernel(
    fun: Callable[..., None],
    args: Sequence[Any],
    avals: Sequence[ShapedArray],
    out_shape: Any,
    spec: GridSpec,
    options: dict[str, Any],
) -> tuple[Kernel, Any]:
    """The kernel for operands of these types, and the tree of its results."""
    check_operands(options["name"], avals)
    outs, out_tree = flatten(out_shape)
    axes = frozenset[Any]().union(*(a.vma for a in avals))
    types, grid, count = result_types(outs, axes), options["grid"], spec.num_scalar_prefetch
    check_aliases(options["aliases"], avals, types)
    check_prefetch(count, len(args))
    trees = list(map(structure, args))
    first = sum(tree.num_leaves for tree in trees[:count])
    prefetch = [AbstractRef(a, None, "smem") for a in avals[:first]]
    ins = specs_of("in_specs", spec.in_specs, tuple(args[count:]))
    names = [*(f"operand {i}" for i in range(len(ins))), *(f"result {i}" for i in range(len(types)))]
    every = zip([*ins, *specs_of("out_specs", spec.out_specs, out_shape)], [*avals[first:], *types], names, strict=True)
    blocks = tuple(block_of(each, aval, grid, prefetch, what) for each, aval, what in every)
    scratch = scratch_types(spec.scratch_shapes)
    refs = [*prefetch, *map(block_ref, blocks), *(s.ref_type(axes) for s in scratch)]
    out_trees = [structure(o) for o in out_shape] if isinstance(out_shape, tuple | list) else [out_tree]
    scratches = spec.scratch_shapes if isinstance(spec.scratch_shapes, tuple | list) else (spec.scratch_shapes,)
    operands = Operands([*trees, *out_trees, *map(structure, scratches)], refs)
    made = Kernel(
        jaxpr=trace_kernel(fun, options["name"], grid, operands),
        blocks=blocks,
        num_outputs=len(types),
        num_prefetch=first,
        ref_names=names_of_refs(fun, operands.trees),
        **options,
    )
    _check_reads(made)
    return made, out_tree


def _check_reads(kernel: Kernel) -> None:
    """TypeError for a kernel that writes what it may only read."""
    only_read = kernel.refs()[: kernel.num_prefetch + kernel.num_inputs]
    for i, ref in enumerate(only_read):
        if ref in written(kernel.jaxpr):
            raise TypeError(
                f"pallas_call: {kernel.name} writes to its operand {i}; write to a result, with "
                f"input_output_aliases={{{i}: 0}} if it shall take the operand's place"
            )
