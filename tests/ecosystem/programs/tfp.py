"""TensorFlow Probability over JAX: special functions and samplers with their derivatives, fits, chains, processes."""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tensorflow_probability.substrates import jax as tfp

_tfd, _tfb, _tfm = tfp.distributions, tfp.bijectors, tfp.math


def special_functions() -> dict[str, Any]:
    """Functions that have derivative rules of the library's own: values and derivatives, under jit and vmap."""
    x, a, b = jnp.array([0.3, 0.7, 2.5]), jnp.array([0.6, 1.5, 3.0]), jnp.array([2.2, 0.9, 1.3])
    unit = jnp.array([0.2, 0.5, 0.85])
    functions = {
        "bessel_ive": (_tfm.bessel_ive, a, x), "lambertw": (_tfm.lambertw, x), "erfcx": (_tfm.erfcx, x),
        "logerfcx": (_tfm.logerfcx, -x), "owens_t": (_tfm.owens_t, x, a), "betainc": (_tfm.betainc, a, b, unit),
        "atan_difference": (_tfm.atan_difference, x, b), "log1mexp": (_tfm.log1mexp, x),
        "log_sub_exp": (_tfm.log_sub_exp, a + 3, x), "smootherstep": (_tfm.smootherstep, unit),
        "softplus_inverse": (_tfm.softplus_inverse, x), "sqrt1pm1": (_tfm.sqrt1pm1, x), "lbeta": (_tfm.lbeta, a, b),
        "log_gamma_difference": (_tfm.log_gamma_difference, a, b + 9), "log_cosh": (_tfm.log_cosh, x),
    }
    out = {}
    for name, (f, *arguments) in functions.items():
        last = len(arguments) - 1
        slope = jax.vmap(jax.value_and_grad(lambda *x, f=f: f(*x), argnums=last))
        out[name] = jax.jit(slope)(*arguments)
    return out


def samplers() -> dict[str, Any]:
    """Samples, densities, and their derivatives for the parameters: implicit ones for those that have no formula."""
    p = jnp.array([0.4, 1.1])
    key = jax.random.PRNGKey(0)
    made = {
        "student": lambda p: _tfd.StudentT(2 + p, p, 1.0), "von_mises": lambda p: _tfd.VonMises(p, 1 + p),
        "inverse_gaussian": lambda p: _tfd.InverseGaussian(p, 1 + p),
        "mixture": lambda p: _tfd.MixtureSameFamily(
            _tfd.Categorical(logits=p), _tfd.Normal(p, 1.0), reparameterize=True),
        "two_piece": lambda p: _tfd.TwoPieceNormal(p, 1.0, skewness=1 + p),
    }
    out: dict[str, Any] = {}
    for name, make in made.items():
        def run(p: Any, make: Any = make) -> Any:
            samples = make(p).sample(3, seed=key)
            density = make(p).log_prob(jax.lax.stop_gradient(samples))
            return samples.sum() + density.sum(), (samples, density)

        out[name] = jax.jit(jax.value_and_grad(run, has_aux=True))(p)
    return out


def flows_and_joint_models() -> dict[str, Any]:
    """A chain of bijectors fitted to data; a joint model of named variables, and its variational fit."""
    rng = np.random.default_rng(0)
    data = np.exp(rng.standard_normal((64, 2)) @ [[0.6, 0.3], [0.0, 0.4]] + [0.5, -0.5]).astype("float32")

    def flow(shift: Any, entries: Any) -> Any:
        tril = _tfb.FillScaleTriL(diag_bijector=_tfb.Softplus(), diag_shift=jnp.float32(1e-3))
        steps = [_tfb.Exp(), _tfb.Shift(shift), _tfb.ScaleMatvecTriL(tril(entries))]
        return _tfd.TransformedDistribution(_tfd.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)), _tfb.Chain(steps))

    def loss(shift: Any, entries: Any) -> Any:
        # an array of its own at each call: for one that it has seen, the library may answer from another trace
        return -flow(shift, entries).log_prob(jnp.array(data)).mean()

    init = (jnp.zeros(2), jnp.zeros(3))
    fitted, losses = jax.jit(lambda: _tfm.minimize_stateless(loss, init, 40, optax.adam(0.1)))()
    made = {"losses": losses, "fitted": fitted, "cdf": _tfb.NormalCDF().forward_log_det_jacobian(data[0]),
            "spline": _tfb.RationalQuadraticSpline(jnp.ones(4), jnp.ones(4), jnp.ones(3)).inverse(data[0]),
            "grads": jax.grad(loss, (0, 1))(*init)}

    @_tfd.JointDistributionCoroutineAutoBatched
    def model() -> Any:
        scale = yield _tfd.HalfNormal(1.0, name="scale")
        weights = yield _tfd.Sample(_tfd.Normal(0.0, scale), 2, name="weights")
        yield _tfd.Normal(data @ weights, 0.5, name="y")

    seen = model.experimental_pin(y=jnp.log(data).sum(1))
    sample = model.sample(seed=jax.random.PRNGKey(1))
    surrogate = tfp.experimental.vi.build_factored_surrogate_posterior_stateless(
        seen.event_shape, bijector=seen.experimental_default_event_space_bijector())
    params = surrogate[0](jax.random.PRNGKey(2))
    _, elbo = jax.jit(lambda: tfp.vi.fit_surrogate_posterior_stateless(
        seen.unnormalized_log_prob, surrogate[1], params, optax.adam(0.1), 20, sample_size=3,
        seed=jax.random.PRNGKey(3)))()
    return made | {"sample": tuple(sample), "density": model.log_prob(sample), "elbo": elbo}


def chains_and_processes() -> dict[str, Any]:
    """Adapted Hamiltonian chains with diagnostics; a Gaussian process with gradients for its kernel; hidden states."""
    x = jnp.linspace(-2.0, 2.0, 9)[:, None]
    y = jnp.sin(2 * x[:, 0])

    def process(length: Any) -> Any:
        kernel = tfp.math.psd_kernels.MaternFiveHalves(1.0, length) + tfp.math.psd_kernels.Linear(0.3)
        return _tfd.GaussianProcess(kernel, x, observation_noise_variance=0.05), kernel

    likelihood = jax.jit(jax.value_and_grad(lambda length: process(length)[0].log_prob(y)))
    posterior = _tfd.GaussianProcessRegressionModel(process(0.8)[1], x[::2] + 0.1, x, y, 0.05)
    target = lambda q: _tfd.MultivariateNormalTriL(jnp.ones(2), jnp.array([[1.0, 0.0], [0.5, 0.7]])).log_prob(q)
    kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(
        tfp.mcmc.HamiltonianMonteCarlo(target, step_size=0.3, num_leapfrog_steps=3), num_adaptation_steps=6)

    @jax.jit
    def run(start: Any, key: Any) -> Any:
        states, accepted = tfp.mcmc.sample_chain(
            12, start, kernel=kernel, trace_fn=lambda _, r: r.inner_results.log_accept_ratio, seed=key)
        return states, accepted, tfp.mcmc.potential_scale_reduction(states), tfp.mcmc.effective_sample_size(states)

    model = _tfd.HiddenMarkovModel(_tfd.Categorical(probs=jnp.array([0.6, 0.4])),
                                   _tfd.Categorical(probs=jnp.array([[0.8, 0.2], [0.3, 0.7]])),
                                   _tfd.Normal(jnp.array([-0.5, 0.5]), 0.7), num_steps=9)
    return {"likelihood": likelihood(0.8), "posterior": [posterior.mean(), posterior.stddev()],
            "chains": run(jnp.zeros((4, 2)), jax.random.PRNGKey(0)), "states": model.posterior_mode(y),
            "smoothed": model.posterior_marginals(y).probs_parameter(), "slope": jax.grad(model.log_prob)(y)}
