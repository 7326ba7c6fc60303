"""Programs of blackjax: adapted Hamiltonian samplers on a regression, tempered particles, and variational fits."""
from __future__ import annotations

import blackjax
import blackjax.smc.resampling as resampling
import jax
import jax.numpy as jnp
import numpy as np
import optax
from blackjax.vi import svgd

TOLERANCES = {"hamiltonian_samplers": 1e-3}
"""Adapted steps follow the rounding of the density and its gradient."""


def _regression():
    """The log density of a logistic regression with a scale of its own, and where to start."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((40, 3)), jnp.float32)
    y = jnp.asarray(rng.random(40) < 1 / (1 + np.exp(-np.asarray(x) @ [1.0, -0.5, 0.2])), jnp.float32)

    def log_density(position):
        scale = jnp.exp(position["log_scale"])
        logits = x @ position["weights"] * scale
        likelihood = (y * logits - jnp.logaddexp(0.0, logits)).sum()
        return likelihood - 0.5 * (position["weights"] ** 2).sum() - 0.5 * position["log_scale"] ** 2

    return log_density, {"weights": jnp.zeros(3), "log_scale": jnp.array(0.0)}


def _chain(kernel, state, key, steps):
    step = lambda state, key: (lambda out: (out[0], out))(kernel(key, state))
    return jax.jit(lambda state, key: jax.lax.scan(step, state, jax.random.split(key, steps))[1])(state, key)


def hamiltonian_samplers() -> dict[str, jax.Array]:
    """NUTS with an adapted window, and HMC of four chains under vmap; their diagnostics."""
    log_density, start = _regression()
    warmup = blackjax.window_adaptation(blackjax.nuts, log_density, initial_step_size=0.3)
    (state, parameters), _ = warmup.run(jax.random.PRNGKey(0), start, num_steps=20)
    states, info = _chain(blackjax.nuts(log_density, **parameters).step, state, jax.random.PRNGKey(1), 10)

    hmc = blackjax.hmc(log_density, 0.2, jnp.ones(4), num_integration_steps=5)
    begins = jax.vmap(lambda k: hmc.init({"weights": jax.random.normal(k, (3,)), "log_scale": jnp.array(0.1)}))
    keys = jax.random.split(jax.random.PRNGKey(2), 4)
    chains, accepted = jax.vmap(lambda s, k: _chain(hmc.step, s, k, 15))(begins(keys), keys)
    weights = chains.position["weights"]
    return {
        "step_size": parameters["step_size"],
        "mass": parameters["inverse_mass_matrix"],
        "weights": states.position["weights"][:3],
        "leaps": info.num_integration_steps,
        "chains": weights[:, -1],
        "accepted": accepted.is_accepted.sum(1),
        "gradient": chains.logdensity_grad["weights"][:, -1],
        "ess": blackjax.diagnostics.effective_sample_size(weights),
        "rhat": blackjax.diagnostics.potential_scale_reduction(weights),
    }


def other_kernels() -> dict[str, jax.Array]:
    """A few steps of each of the other kernels from one place."""
    log_density, start = _regression()
    gradient = lambda position, _: jax.grad(log_density)(position)
    batchless = jnp.zeros(1)
    key = jax.random.PRNGKey(3)
    flat = lambda v: log_density({"weights": v[:3], "log_scale": v[3]})
    kernels = {
        "mala": (blackjax.mala(log_density, 0.05), start),
        "barker": (blackjax.barker(log_density, 0.2), start),
        "ghmc": (blackjax.ghmc(log_density, 0.1, jax.tree.map(jnp.ones_like, start), 0.3, 0.1), start),
        "random_walk": (blackjax.additive_step_random_walk.normal_random_walk(flat, jnp.full(4, 0.2)), jnp.zeros(4)),
        "elliptical": (blackjax.elliptical_slice(flat, mean=jnp.zeros(4), cov=jnp.eye(4)), jnp.zeros(4)),
        "dynamic_hmc": (blackjax.dynamic_hmc(log_density, 0.1, jnp.ones(4)), start),
    }
    found = {}
    for name, (kernel, begin) in kernels.items():
        state = kernel.init(begin, key) if name in ("ghmc", "dynamic_hmc") else kernel.init(begin)
        states, _ = _chain(kernel.step, state, key, 6)
        found[name] = [leaf[-1] for leaf in jax.tree.leaves(states.position)]
    sgld = blackjax.sgld(gradient)
    moved = jax.lax.fori_loop(0, 5, lambda i, p: sgld.step(jax.random.PRNGKey(i), p, batchless, 1e-2), start)
    return {**found, "sgld": moved}


def particles_and_variational_fits() -> dict[str, jax.Array]:
    """Tempered sequential Monte Carlo to the full posterior, mean-field inference, pathfinder and Stein's method."""
    log_density, start = _regression()
    hmc = {"step_size": jnp.array(0.2), "inverse_mass_matrix": jnp.ones(4), "num_integration_steps": 3}
    batched = jax.tree.map(lambda v: jnp.asarray(v)[None], hmc)
    smc = blackjax.adaptive_tempered_smc(
        lambda p: -0.5 * ((p["weights"] ** 2).sum() + p["log_scale"] ** 2),
        lambda p: log_density(p) + 0.5 * ((p["weights"] ** 2).sum() + p["log_scale"] ** 2),
        blackjax.hmc.build_kernel(),
        blackjax.hmc.init,
        batched,
        resampling.systematic,
        0.5,
        num_mcmc_steps=2,
    )
    drawn = lambda k: {"weights": jax.random.normal(k, (3,)), "log_scale": 0.1 * jax.random.normal(k)}
    particles = jax.vmap(drawn)(jax.random.split(jax.random.PRNGKey(4), 32))
    state = smc.init(particles)
    for i in range(2):
        state, _ = jax.jit(smc.step)(jax.random.PRNGKey(i), state)
    found = {"temperature": state.tempering_param, "particles": state.particles["weights"].mean(0)}

    vi = blackjax.meanfield_vi(log_density, optax.adam(0.1), num_samples=8)

    def step(state, key):
        state, info = vi.step(key, state)
        return state, info.elbo

    fitted, elbo = jax.lax.scan(step, vi.init(start), jax.random.split(jax.random.PRNGKey(5), 40))
    found |= {"mean": fitted.mu, "spread": fitted.rho, "elbo": elbo[::10]}

    path, _ = blackjax.vi.pathfinder.approximate(jax.random.PRNGKey(6), log_density, start, num_samples=20, maxiter=8)
    found |= {"path_elbo": path.elbo, "path": path.position}

    parts = svgd.rbf_kernel, svgd.update_median_heuristic
    moving = blackjax.svgd(jax.grad(log_density), optax.sgd(0.1), *parts)
    stein = moving.init(particles)
    for _ in range(3):
        stein = jax.jit(moving.step)(stein)
    return {**found, "stein": stein.particles["weights"][:4]}
