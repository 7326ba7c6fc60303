"""Dynamax: hidden Markov models and linear dynamical systems fitted to data, filters and smoothers with gradients."""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from dynamax.hidden_markov_model import (
    GaussianHMM,
    hmm_filter,
    hmm_posterior_mode,
    hmm_posterior_sample,
    hmm_smoother,
    parallel_hmm_smoother,
)
from dynamax.linear_gaussian_ssm import (
    lgssm_filter,
    lgssm_posterior_sample,
    lgssm_smoother,
    parallel_lgssm_smoother,
)
from dynamax.linear_gaussian_ssm.inference import make_lgssm_params
from dynamax.nonlinear_gaussian_ssm import (
    ParamsNLGSSM,
    UKFHyperParams,
    extended_kalman_smoother,
    unscented_kalman_filter,
)

_RNG = np.random.default_rng(0)
_MEANS = np.array([[-1.0, 0.0], [1.0, 0.5], [0.0, -1.5]])
_STATES = np.repeat([0, 1, 2, 1], 5)
_EMISSIONS = jnp.asarray(_MEANS[_STATES] + 0.3 * _RNG.standard_normal((3, 20, 2)), jnp.float32)


def hidden_markov_models() -> dict[str, Any]:
    """A Gaussian model fitted by EM to three sequences; the kinds of inference, and a gradient."""
    hmm = GaussianHMM(3, 2)
    means = jnp.asarray(_MEANS + 0.5, jnp.float32)
    covariances = jnp.stack([jnp.eye(2)] * 3)
    params, properties = hmm.initialize(jax.random.PRNGKey(0), method="prior", emission_means=means,
                                        emission_covariances=covariances)
    fitted, marginals = hmm.fit_em(params, properties, _EMISSIONS, num_iters=4, verbose=False)
    initial, transitions = fitted.initial.probs, fitted.transitions.transition_matrix
    likelihoods = hmm._inference_args(fitted, _EMISSIONS[0], None)[2]
    smoothed = hmm_smoother(initial, transitions, likelihoods)
    loss = lambda x: hmm_filter(initial, transitions, x).marginal_loglik
    states = hmm_posterior_sample(jax.random.PRNGKey(2), initial, transitions, likelihoods)
    return {
        "marginals": marginals, "means": fitted.emissions.means, "smoothed": smoothed.smoothed_probs,
        "parallel": parallel_hmm_smoother(initial, transitions, likelihoods).smoothed_probs,
        "mode": hmm_posterior_mode(initial, transitions, likelihoods), "states": states,
        "grads": jax.jit(jax.grad(loss))(likelihoods),
        "batch": jax.vmap(lambda y: hmm.marginal_log_prob(fitted, y))(_EMISSIONS),
    }


def linear_systems() -> dict[str, Any]:
    """Kalman filters, smoothers and samples, serial and parallel, with gradients for the dynamics."""
    turn = jnp.array([[0.9, -0.3], [0.3, 0.9]])
    observed = _EMISSIONS[0]

    def params(dynamics: Any) -> Any:
        return make_lgssm_params(jnp.zeros(2), jnp.eye(2), dynamics, 0.1 * jnp.eye(2), jnp.eye(2), 0.2 * jnp.eye(2))

    loss = lambda dynamics: -lgssm_filter(params(dynamics), observed).marginal_loglik
    smoothed = lgssm_smoother(params(turn), observed)
    return {
        "means": smoothed.smoothed_means, "covariances": smoothed.smoothed_covariances[-1],
        "parallel": parallel_lgssm_smoother(params(turn), observed).smoothed_means,
        "sample": lgssm_posterior_sample(jax.random.PRNGKey(1), params(turn), observed),
        "grads": jax.jit(jax.value_and_grad(loss))(turn),
    }


def nonlinear_systems() -> dict[str, Any]:
    """A pendulum seen through its sine: extended and unscented filters, and the gradient of the likelihood."""
    observed = jnp.sin(jnp.linspace(0.5, 3.0, 15))[:, None]

    def params(gravity: Any) -> Any:
        swing = lambda s: jnp.stack([s[0] + 0.1 * s[1], s[1] - 0.1 * gravity * jnp.sin(s[0])])
        return ParamsNLGSSM(jnp.array([0.5, 0.0]), 0.1 * jnp.eye(2), swing, 0.02 * jnp.eye(2),
                            lambda s: jnp.sin(s[:1]), 0.05 * jnp.eye(1))

    loss = lambda gravity: extended_kalman_smoother(params(gravity), observed).marginal_loglik
    unscented = unscented_kalman_filter(params(2.0), observed, UKFHyperParams())
    return {"smoothed": extended_kalman_smoother(params(2.0), observed).smoothed_means,
            "unscented": unscented.filtered_means, "slope": jax.jit(jax.value_and_grad(loss))(2.0)}
