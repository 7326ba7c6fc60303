"""Measures an idea: a deep program as several executables, one for each kind of block, run one after another.

    python -m benchmarks.several_executables 48 [--whole]

It prints the time of the first step of a transformer, that of a step, and the peak memory. XLA compiles a block that
repeats once in both, but as one program it copies the block for each layer before most of its passes, and YNNPACK makes
plans for each copy. With `--whole` the step is one program, as `jit` makes it.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import xlamini
from benchmarks import transformer
from benchmarks.timing import once
from xlamini.core import Equation, Jaxpr, Var
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.outline.boundary import Boundary
from xlamini.staging.call.call import jit_p

CALLS = 30
Run = Callable[..., list[Any]]


class Part(NamedTuple):
    """Equations of a program that are one executable, and the values that none after it reads."""

    run: Run
    operands: list[Var]
    results: list[Var]
    last_read: list[Var]


def main() -> None:
    """Measure a model of one depth, from the trace to its first step, and then its steps."""
    parser = argparse.ArgumentParser(description="Time a transformer's step as several executables.")
    parser.add_argument("depth", type=int)
    parser.add_argument("--whole", action="store_true")
    args = parser.parse_args()
    leaves = xlamini.tree.leaves((transformer.init_params(args.depth), transformer.make_batch()))
    made, step = once(lambda: _step(args.depth, args.whole))
    first, _ = once(lambda: xlamini.block_until_ready(step(*leaves)))
    arrays = [xlamini.numpy.asarray(x) for x in leaves]
    steady = min(once(lambda: xlamini.block_until_ready(step(*arrays)))[0] for _ in range(CALLS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{args.depth} layers: first step {made + first:.2f} s, a step {steady * 1e3:.1f} ms, peak {peak:.0f} MB")


def _step(depth: int, whole: bool) -> Run:
    """The step of a model, of flat arrays."""
    if not whole:  # shapes that kernels of several blocks share are needless where each block is an executable
        Boundary.stored_shape = lambda self, x: x.aval.shape  # pyright: ignore
    operands = transformer.init_params(depth), transformer.make_batch()
    lowered = xlamini.jit(transformer.make_step(xlamini)).trace(*operands).lower()
    if not whole:
        return several(lowered._program.jaxpr)
    compiled, tree = lowered.compile(), xlamini.tree.structure(operands)
    return lambda *leaves: xlamini.tree.leaves(compiled(*xlamini.tree.unflatten(tree, leaves)))


def several(jaxpr: Jaxpr) -> Run:
    """A function that runs the blocks of an outlined program, and what lies between them, as programs of their own."""
    parts = _parts(jaxpr)

    def run(*args: Any) -> list[Any]:
        values = dict(zip(jaxpr.invars, args, strict=True))
        for part in parts:
            results = part.run(*(values[v] for v in part.operands))
            for v in part.last_read:
                del values[v]
            values.update(zip(part.results, results, strict=True))
        return [values[v] for v in jaxpr.outvars if type(v) is Var]

    return run


def _parts(jaxpr: Jaxpr) -> list[Part]:
    groups = list(_groups(jaxpr.eqns))
    last = {a: i for i, eqns in enumerate(groups) for eqn in eqns for a in eqn.invars if type(a) is Var}
    last |= {v: len(groups) for v in jaxpr.outvars if type(v) is Var}
    runs: dict[Jaxpr, Run] = {}
    parts = []
    for i, eqns in enumerate(groups):
        made = [v for eqn in eqns for v in eqn.outvars if last.get(v, -1) > i]
        function, operands, results = _called(eqns[0]) if _is_block(eqns[0]) else _between(eqns, made)
        if function not in runs:
            runs[function] = _compiled(function)
        parts.append(Part(runs[function], operands, results, [v for v in {*operands} if last.get(v) == i]))
    return parts


def _called(call: Equation) -> tuple[Jaxpr, list[Var], list[Var]]:
    return call.params["jaxpr"], [a for a in call.invars if type(a) is Var], list(call.outvars)


def _between(eqns: Sequence[Equation], results: list[Var]) -> tuple[Jaxpr, list[Var], list[Var]]:
    defined = {v for eqn in eqns for v in eqn.outvars}
    read = dict.fromkeys(a for eqn in eqns for a in eqn.invars if type(a) is Var and a not in defined)
    return Jaxpr([], list(read), results, eqns), list(read), results


def _groups(eqns: Sequence[Equation]) -> Iterator[list[Equation]]:
    """Each call of a block by itself, and the equations between calls."""
    between: list[Equation] = []
    for eqn in eqns:
        if not _is_block(eqn):
            between.append(eqn)
            continue
        if between:
            yield between
        yield [eqn]
        between = []
    if between:
        yield between


def _is_block(eqn: Equation) -> bool:
    return eqn.primitive is jit_p and "_block_" in eqn.params["jaxpr"].name


def _compiled(jaxpr: Jaxpr) -> Run:
    return xlamini.jit(lambda *args: evaluate(jaxpr, args))


if __name__ == "__main__":
    main()
