"""Diffrax: explicit, implicit and stochastic solvers, all adjoints, events, dense output, a neural ODE."""
from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optax
import optimistix as optx

START = jnp.array([1.0, 0.5])
RATES = jnp.array([1.1, 0.4, 0.3, 0.9])
CONTROLLER = diffrax.PIDController(rtol=1e-5, atol=1e-6)


def _hunters(t: Any, y: Any, rates: Any) -> Any:
    """The equations of Lotka and Volterra."""
    a, b, c, d = rates
    return jnp.stack([a * y[0] - b * y[0] * y[1], c * y[0] * y[1] - d * y[1]])


def _solved(rates: Any, solver: Any, **options: Any) -> Any:
    options = {"stepsize_controller": CONTROLLER, "max_steps": 512} | options
    return diffrax.diffeqsolve(diffrax.ODETerm(_hunters), solver, 0.0, 4.0, 0.1, START, rates, **options)


def solvers_and_adjoints() -> dict[str, Any]:
    """Solvers beside each other, gradients by every adjoint, forward mode, batches, events, dense output."""
    out: dict[str, Any] = {}
    newton = optx.Newton(rtol=1e-5, atol=1e-6)
    kinds = {"tsit5": diffrax.Tsit5(), "heun": diffrax.Heun(), "kvaerno5": diffrax.Kvaerno5(root_finder=newton)}
    for name, solver in kinds.items():
        fixed = {"stepsize_controller": diffrax.ConstantStepSize()}
        options = fixed if name == "heun" else {}
        sol = eqx.filter_jit(_solved)(RATES, solver, saveat=diffrax.SaveAt(ts=jnp.linspace(0, 4, 5)), **options)
        out |= {f"{name}/ys": sol.ys, f"{name}/steps": sol.stats["num_steps"]}
        grad = jax.jit(jax.grad(lambda r, s=solver, o=options: (_solved(r, s, **o).ys[-1] ** 2).sum()))
        out[f"{name}/grad"] = grad(RATES)
    adjoints = {"recursive": diffrax.RecursiveCheckpointAdjoint(checkpoints=6), "direct": diffrax.DirectAdjoint(),
                "backsolve": diffrax.BacksolveAdjoint(stepsize_controller=CONTROLLER)}
    for name, adjoint in adjoints.items():
        out[f"adjoint/{name}"] = jax.jit(jax.grad(
            lambda r, a=adjoint: (_solved(r, diffrax.Tsit5(), adjoint=a).ys[-1] ** 2).sum()))(RATES)

    def steady(rates: Any) -> Any:
        term = diffrax.ODETerm(lambda t, y, r: r[:2] - r[2:] * y)
        event = diffrax.Event(diffrax.steady_state_event(rtol=1e-4, atol=1e-5))
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, jnp.inf, 0.1, START, rates, event=event,
                                   stepsize_controller=CONTROLLER, adjoint=diffrax.ImplicitAdjoint()).ys[-1]

    out["adjoint/implicit"] = jax.jacrev(steady)(RATES)
    forward = diffrax.ForwardMode()
    out["jvp"] = jax.jvp(lambda r: _solved(r, diffrax.Tsit5(), adjoint=forward).ys[-1], (RATES,), (RATES,))[1]
    out["vmap"] = jax.vmap(lambda r: _solved(r, diffrax.Tsit5()).ys[-1])(RATES * jnp.array([[0.8], [1.0], [1.2]]))
    dense = _solved(RATES, diffrax.Tsit5(), saveat=diffrax.SaveAt(dense=True, t1=True))
    times = jnp.array([0.3, 1.7, 3.9])
    out["dense"] = jax.vmap(dense.evaluate)(times)
    out["dense/derivative"] = jax.vmap(dense.derivative)(times)
    event = diffrax.Event(lambda t, y, args, **_: y[0] - 2.0, optx.Newton(1e-5, 1e-5))

    def crossing(rates: Any) -> Any:
        return _solved(rates, diffrax.Tsit5(), event=event).ts[-1]

    out["event"], out["event/grad"] = jax.value_and_grad(crossing)(RATES)
    return out


class Field(eqx.Module):
    """The right side of a differential equation, learned."""

    mlp: eqx.nn.MLP

    def __call__(self, t: Any, y: Any, args: Any) -> Any:
        return self.mlp(y)


def _rotations() -> tuple[Any, Any]:
    """Times, and the paths of eight points of a circle that turns."""
    ts = jnp.linspace(0.0, 1.5, 6)
    angle = np.linspace(0, 2 * np.pi, 8, endpoint=False)[:, None]
    return ts, jnp.asarray(np.stack([np.cos(angle + ts), np.sin(angle + ts)], -1))


def neural_equation() -> dict[str, Any]:
    """A neural ODE learns a rotation."""
    ts, ys = _rotations()
    model = Field(eqx.nn.MLP(2, 2, 16, 1, activation=jnp.tanh, key=jax.random.key(0)))
    tx = optax.adam(2e-2)
    moments = tx.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model: Any, moments: Any) -> Any:
        def loss(model: Any) -> Any:
            def path(y0: Any) -> Any:
                return diffrax.diffeqsolve(diffrax.ODETerm(model), diffrax.Tsit5(), 0.0, 1.5, 0.25, y0,
                                           saveat=diffrax.SaveAt(ts=ts)).ys

            return ((jax.vmap(path)(ys[:, 0]) - ys) ** 2).mean()

        value, grads = eqx.filter_value_and_grad(loss)(model)
        updates, moments = tx.update(grads, moments)
        return eqx.apply_updates(model, updates), moments, value, grads

    losses = []
    for i in range(60):
        model, moments, value, grads = step(model, moments)
        losses.append(value)
        first = grads if i == 0 else first  # noqa: F821
    return {"losses": jnp.stack(losses[:8]), "learned": losses[-1] < 0.01,
            "grads": jax.tree.leaves(eqx.filter(first, eqx.is_array))}


def stochastic_and_controlled() -> dict[str, Any]:
    """Stochastic equations on a virtual Brownian tree, an equation controlled by a spline, and their gradients."""
    out: dict[str, Any] = {}
    ts, ys = _rotations()

    def noisy(sigma: Any, key: Any, solver: Any) -> Any:
        path = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(2,), key=key)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, s: -y),
            diffrax.ControlTerm(lambda t, y, s: lx.DiagonalLinearOperator(s * jnp.cos(y)), path))
        return diffrax.diffeqsolve(terms, solver, 0.0, 1.0, 0.05, START, sigma).ys[-1]

    keys = jax.random.split(jax.random.key(1), 4)
    for name, solver in {"euler": diffrax.EulerHeun(), "milstein": diffrax.ItoMilstein(),
                         "heun": diffrax.ReversibleHeun()}.items():
        out[f"noise/{name}"] = jax.jit(jax.vmap(lambda k, s=solver: noisy(jnp.array([0.3, 0.2]), k, s)))(keys)
        out[f"noise/{name}/grad"] = jax.grad(lambda s, v=solver: noisy(s, keys[0], v).sum())(jnp.array([0.3, 0.2]))
    spline = diffrax.CubicInterpolation(ts, diffrax.backward_hermite_coefficients(ts, ys[0]))
    controlled = diffrax.ControlTerm(lambda t, y, s: s * jnp.stack([y, -y], 1), spline)
    out["controlled"] = jax.jit(jax.grad(lambda s: diffrax.diffeqsolve(
        controlled.to_ode(), diffrax.Tsit5(), 0.0, 1.5, 0.1, START, s).ys[-1].sum()))(0.5)
    return out
