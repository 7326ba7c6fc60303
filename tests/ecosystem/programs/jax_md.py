"""JAX MD: particles minimized and moved, with lists of neighbors, and derivatives of energies and of trajectories."""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax_md import energy, minimize, quantity, rigid_body, simulate, space

_BOX = 4.4
_GRID = np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2) * 1.1 + 0.3
_START = jnp.asarray(_GRID + 0.08 * np.random.default_rng(0).standard_normal(_GRID.shape), jnp.float32)


def energies() -> dict[str, Any]:
    """Potentials of pairs and of triples: energies, forces, a Hessian, and the slope of a distance that is zero."""
    displacement, _ = space.periodic(_BOX)
    made = {
        "lennard_jones": energy.lennard_jones_pair(displacement), "morse": energy.morse_pair(displacement),
        "soft_sphere": energy.soft_sphere_pair(displacement, sigma=1.2),
    }
    out: dict[str, Any] = {name: [f(_START), jax.jit(quantity.force(f))(_START)] for name, f in made.items()}
    hessian = jax.jit(jax.hessian(made["soft_sphere"]))(_START).reshape(32, 32)
    network = energy.stillinger_weber(space.periodic(_BOX)[0])
    apart = jnp.concatenate([_START, jnp.zeros((16, 1))], 1)
    return out | {"hessian": jnp.diag(hessian), "stillinger_weber": jax.value_and_grad(network)(apart * 2.0),
                  "distance": jax.grad(lambda r: space.distance(r))(jnp.zeros(2))}


def neighbors() -> dict[str, Any]:
    """Minimization by FIRE and motion at constant energy with a list of neighbors, like that without a list."""
    displacement, shift = space.periodic(_BOX)
    neighbor_fn, near = energy.lennard_jones_neighbor_list(
        displacement, _BOX, r_onset=1.4, r_cutoff=1.8, dr_threshold=0.2)
    every = energy.lennard_jones_pair(displacement, r_onset=1.4, r_cutoff=1.8)
    init, apply = minimize.fire_descent(every, shift, dt_start=0.01, dt_max=0.04)
    found = jax.jit(lambda r: jax.lax.fori_loop(0, 30, lambda i, s: apply(s), init(r)))(_START).position
    listed = neighbor_fn.allocate(found)
    begin, move = simulate.nve(near, shift, 2e-3)
    state = begin(jax.random.PRNGKey(0), found, kT=0.2, neighbor=listed)

    def step(carry: Any, _: Any) -> Any:
        state, listed = carry
        state = move(state, neighbor=listed)
        listed = listed.update(state.position)
        return (state, listed), near(state.position, neighbor=listed)

    (state, listed), values = jax.jit(lambda c: jax.lax.scan(step, c, None, 20))((state, listed))
    return {"minimum": [every(found), found], "listed": jax.jit(near)(found, neighbor=listed), "energies": values,
            "positions": state.position, "overflow": listed.did_buffer_overflow}


def ensembles() -> dict[str, Any]:
    """A Nose-Hoover thermostat and Langevin motion, copies side by side; the derivative of a path for a parameter."""
    displacement, shift = space.periodic(_BOX)
    potential = energy.soft_sphere_pair(displacement)

    def run(make: Any, key: Any) -> Any:
        begin, move = make
        state = begin(key, _START)
        state = jax.lax.fori_loop(0, 15, lambda i, s: move(s), state)
        return state.position, quantity.temperature(momentum=state.momentum)

    keys = jax.random.split(jax.random.PRNGKey(1), 3)
    made = {"nose_hoover": simulate.nvt_nose_hoover(potential, shift, 1e-3, 0.3),
            "langevin": simulate.nvt_langevin(potential, shift, 1e-3, 0.3)}
    out = {name: jax.jit(jax.vmap(lambda key, m=m: run(m, key)))(keys) for name, m in made.items()}

    def end(sigma: Any) -> Any:
        begin, move = simulate.nve(energy.soft_sphere_pair(displacement, sigma=sigma), shift, 5e-3)
        state = begin(jax.random.PRNGKey(2), _START, kT=0.1)
        return jax.lax.fori_loop(0, 10, lambda i, s: move(s), state).position[:3]

    quaternion = rigid_body.Quaternion(jnp.array([0.6, 0.8, 0.0, 0.0]))
    turned = lambda v: rigid_body.quaternion_rotate(quaternion, v)
    return out | {"path": jax.jit(jax.jacfwd(end))(1.1), "turned": jax.vjp(turned, jnp.ones(3))[1](jnp.arange(3.0))[0]}
