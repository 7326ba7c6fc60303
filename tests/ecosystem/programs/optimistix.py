"""Optimistix: roots, least squares, minima and fixed points, with implicit and unrolled derivatives."""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix as optx

TIGHT = {"rtol": 1e-6, "atol": 1e-6}
TOLERANCES = {"fits_and_minima": 5e-5}
"""The fit's gradient solves normal equations in float32: the recorded one is 1.2e-5 from that of float64, and how a CPU
rounds (its width of vectors) moves it by twice as much."""


def roots_and_fixed_points() -> dict[str, Any]:
    """Each root finder and the fixed-point iteration: the root, its derivative by the implicit function theorem."""
    out: dict[str, Any] = {}
    start = jnp.array([0.6, 0.3])

    def equations(y: Any, args: Any) -> Any:
        return jnp.stack([y[0] + 0.3 * jnp.sin(y[1]) - args, y[1] - 0.5 * jnp.cos(y[0])])

    solvers = {"newton": optx.Newton(**TIGHT), "chord": optx.Chord(**TIGHT),
               "dogleg": optx.Dogleg(**TIGHT), "levenberg": optx.LevenbergMarquardt(**TIGHT)}
    for name, solver in solvers.items():
        def root(a: Any, solver: Any = solver) -> Any:
            return optx.root_find(equations, solver, start, a, max_steps=256).value

        out[f"{name}/value"] = root(1.5)
        out[f"{name}/jacobian"] = jax.jacrev(root)(1.5)
        out[f"{name}/jvp"] = jax.jit(jax.jacfwd(root))(1.5)
        out[f"{name}/vmap"] = jax.vmap(jax.grad(lambda a, root=root: root(a).sum()))(jnp.array([1.4, 1.5, 1.8]))

    def bisected(a: Any, kind: Any = optx.Bisection) -> Any:
        within = {"lower": 0.0, "upper": 3.0}
        return optx.root_find(lambda y, a: y ** 3 - a, kind(**TIGHT), 1.0, a, options=within).value

    out["bisection"], out["bisection/grad"] = jax.value_and_grad(bisected)(2.0)
    out["bisection/second"] = jax.grad(jax.grad(bisected))(2.0)
    fixed = lambda a, **options: optx.fixed_point(lambda y, a: jnp.cos(a * y), optx.FixedPointIteration(**TIGHT),
                                                  0.5, a, **options).value
    out["fixed"], out["fixed/grad"] = jax.value_and_grad(fixed)(0.8)
    unrolled = optx.RecursiveCheckpointAdjoint()
    out["fixed/unrolled"] = jax.grad(lambda a: fixed(a, adjoint=unrolled))(0.8)
    failed = optx.root_find(lambda y, _: y ** 2 + 1, optx.Newton(**TIGHT), 0.5, max_steps=5, throw=False)
    out["failed"] = failed.result != optx.RESULTS.successful
    return out


def fits_and_minima() -> dict[str, Any]:
    """Least squares and minimizers: a fit by each, its gradient for the data, by implicit and unrolled adjoints."""
    out: dict[str, Any] = {}
    t = jnp.linspace(0.0, 2.0, 12)
    data = 1.3 * jnp.exp(-0.7 * t) + 0.2

    def residuals(y: Any, data: Any) -> Any:
        return y["scale"] * jnp.exp(-y["rate"] * t) + y["offset"] - data

    start = {"scale": jnp.array(1.0), "rate": jnp.array(0.5), "offset": jnp.array(0.0)}
    for name, solver in {"gauss": optx.GaussNewton(**TIGHT), "levenberg": optx.LevenbergMarquardt(**TIGHT),
                         "indirect": optx.IndirectLevenbergMarquardt(**TIGHT), "dogleg": optx.Dogleg(**TIGHT)}.items():
        def fit(data: Any, solver: Any = solver) -> Any:
            return optx.least_squares(residuals, solver, start, data, max_steps=64).value

        value = fit(data)
        out |= {f"{name}/{k}": v for k, v in value.items()}
        out[f"{name}/grad"] = jax.grad(lambda d, fit=fit: fit(d)["rate"])(data)
    out["gauss/vmap"] = jax.vmap(lambda s: optx.least_squares(
        residuals, optx.GaussNewton(**TIGHT), start, data * s, max_steps=64).value["scale"])(jnp.array([1.0, 1.1, 0.8]))
    return out | _minima()


def _minima() -> dict[str, Any]:
    """Minimizers, whose paths are so long that their ends are rounded; short ones in full."""
    out: dict[str, Any] = {}

    def bowl(y: Any, a: Any) -> Any:
        return (y[0] - a) ** 2 + 2 * (y[1] + a * y[0]) ** 2 + 0.1 * jnp.sum(y ** 4)

    kinds = {"bfgs": optx.BFGS(**TIGHT), "nelder": optx.NelderMead(rtol=1e-5, atol=1e-5),
             "descent": optx.GradientDescent(0.05, rtol=1e-5, atol=1e-5), "cg": optx.NonlinearCG(**TIGHT),
             "lbfgs": optx.LBFGS(**TIGHT),
             "optax": optx.OptaxMinimiser(optax.adam(0.05), rtol=1e-6, atol=1e-6)}
    for name, solver in kinds.items():
        def least(a: Any, solver: Any = solver) -> Any:
            return optx.minimise(bowl, solver, jnp.array([0.5, -0.5]), a, max_steps=4000).value

        value = least(1.0)
        out[f"{name}/near"] = np.round(np.asarray(value), 2)
        out[f"{name}/grad/near"] = np.round(np.asarray(jax.jacrev(least)(1.0)), 1)
    short = lambda a: optx.minimise(bowl, optx.GradientDescent(0.05, rtol=1e-3, atol=1e-3), jnp.array([0.5, -0.5]), a,
                                    max_steps=64, adjoint=optx.RecursiveCheckpointAdjoint()).value.sum()
    out["unrolled"], out["unrolled/grad"] = jax.value_and_grad(short)(1.0)
    golden = optx.minimise(lambda y, _: (y - 0.7) ** 2, optx.GoldenSearch(rtol=1e-4, atol=1e-4), 0.0,
                           options={"lower": -1.0, "upper": 2.0})
    out["golden/near"] = np.round(np.asarray(golden.value), 2)
    return out
