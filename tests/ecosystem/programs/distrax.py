"""Programs of distrax: a normalizing flow fitted to data, and densities, samples and gradients of distributions."""
from __future__ import annotations

import distrax
import jax
import jax.numpy as jnp
import numpy as np


def normalizing_flow() -> dict[str, jax.Array]:
    """Coupling layers with splines, fitted to two moons by gradient descent; samples, and the inverse of the flow."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, 64)
    sign = rng.choice([-1.0, 1.0], 64)
    moons = np.stack([np.cos(angle) + 0.5 * sign, sign * np.sin(angle)], 1)
    data = jnp.asarray(moons + 0.1 * rng.standard_normal((64, 2)), jnp.float32)
    params = [jnp.asarray(rng.standard_normal(s) * 0.2, jnp.float32) for s in ((2, 2, 16), (2, 16, 2 * 13))]

    def flow(params):
        layers = []
        for i in range(2):
            conditioner = lambda x, i=i: (jnp.tanh(x @ params[0][i]) @ params[1][i]).reshape(*x.shape[:-1], 2, 13)
            spline = lambda p: distrax.RationalQuadraticSpline(p, range_min=-3.0, range_max=3.0)
            mask = jnp.arange(2) % 2 == i
            layers.append(distrax.MaskedCoupling(mask, conditioner, spline))
        base = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2))
        return distrax.Transformed(base, distrax.Inverse(distrax.Chain(layers)))

    loss = lambda params: -flow(params).log_prob(data).mean()

    @jax.jit
    def train(params):
        step = lambda p, _: (jax.tree.map(lambda a, g: a - 0.05 * g, p, jax.grad(loss)(p)), loss(p))
        return jax.lax.scan(step, params, None, 40)

    trained, losses = train(params)
    samples, log_probs = flow(trained).sample_and_log_prob(seed=jax.random.PRNGKey(1), sample_shape=(5,))
    return {
        "losses": losses[::10],
        "gradient": jax.grad(loss)(params)[0],
        "samples": samples,
        "log_probs": [log_probs, flow(trained).log_prob(samples)],
        "one_by_one": jax.vmap(lambda x: flow(trained).log_prob(x))(data[:4]),
    }


def distributions() -> dict[str, jax.Array]:
    """Each distribution: samples, densities with gradients, entropies, divergences; vmap over parameters."""
    x = jnp.array([0.3, -0.8, 1.2])
    key = jax.random.PRNGKey(0)
    made = {
        "normal": lambda p: distrax.Normal(p, jnp.exp(p)),
        "laplace": lambda p: distrax.Laplace(p, jnp.exp(p)),
        "logistic": lambda p: distrax.Logistic(p, jnp.exp(p)),
        "gumbel": lambda p: distrax.Gumbel(p, jnp.exp(p)),
        "von_mises": lambda p: distrax.VonMises(p, jnp.exp(p)),
        "bernoulli": lambda p: distrax.Bernoulli(logits=p),
        "categorical": lambda p: distrax.Categorical(logits=p),
        "one_hot": lambda p: distrax.OneHotCategorical(logits=p),
        "uniform": lambda p: distrax.Uniform(p - 2.0, p + 2.0),
        "gamma": lambda p: distrax.Gamma(jnp.exp(p), jnp.exp(-p)),
        "beta": lambda p: distrax.Beta(jnp.exp(p), 1.0 + p**2),
        "dirichlet": lambda p: distrax.Dirichlet(jnp.exp(p)),
        "quantized": lambda p: distrax.Quantized(distrax.Normal(p, 3.0), low=-5, high=5),
        "independent": lambda p: distrax.Independent(distrax.Normal(p, 1.0), 1),
        "tanh": lambda p: distrax.Transformed(distrax.Normal(p, 1.0), distrax.Tanh()),
        "mixture": lambda p: distrax.MixtureSameFamily(distrax.Categorical(p), distrax.Normal(p, jnp.exp(p))),
    }
    found = {}
    for name, make in made.items():
        samples = make(x).sample(seed=key, sample_shape=(2,))
        density = lambda p, make=make, samples=samples: make(p).log_prob(samples)
        found[name] = [samples, density(x), jax.jit(jax.grad(lambda p, f=density: f(p).sum()))(x)]
    normal, other = distrax.Normal(x, 1.0), distrax.Normal(0.0, jnp.exp(x))
    found["statistics"] = [normal.entropy(), other.variance(), other.cdf(x), made["dirichlet"](x).entropy()]
    found["divergences"] = [
        jax.grad(lambda p: distrax.Normal(p, 1.0).kl_divergence(other).sum())(x),
        made["categorical"](x).kl_divergence(made["categorical"](-x)),
        made["beta"](x).kl_divergence(distrax.Beta(2.0, 3.0)),
    ]
    found["mapped"] = jax.vmap(lambda p: distrax.Normal(p, 2.0).log_prob(0.5))(x)
    found["distribution_of_jit"] = jax.jit(lambda p: distrax.Normal(p, 1.0))(x).loc
    return found


def hidden_markov_model_and_gaussians() -> dict[str, jax.Array]:
    """Smoothing, the best path and the gradient of the likelihood in a hidden Markov model; multivariate Gaussians."""
    rng = np.random.default_rng(1)
    logits, observed = (jnp.asarray(rng.standard_normal(s), jnp.float32) for s in ((3, 3), (7,)))

    def model(logits):
        transitions = distrax.Categorical(logits=logits)
        observations = distrax.Normal(jnp.array([-1.0, 0.0, 2.0]), jnp.array([1.0, 0.5, 1.0]))
        return distrax.HMM(distrax.Categorical(logits=logits[0]), transitions, observations)

    scale = jnp.asarray(np.tril(rng.standard_normal((3, 3)) * 0.3) + np.eye(3), jnp.float32)
    full = lambda s: distrax.MultivariateNormalFullCovariance(jnp.ones(3), s @ s.T)
    low_rank = lambda s: distrax.MultivariateNormalDiagPlusLowRank(jnp.zeros(3), jnp.ones(3), s[:, :1])
    densities = {"full": full, "tri": lambda s: distrax.MultivariateNormalTri(jnp.ones(3), s), "low_rank": low_rank}
    point = jnp.array([0.5, -0.5, 2.0])
    alphas, _, posterior, likelihood = model(logits).forward_backward(observed)
    return {
        "smoothed": [alphas, posterior, likelihood],
        "path": model(logits).viterbi(observed),
        "gradient": jax.grad(lambda p: model(p).forward_backward(observed)[3])(logits),
        "sequence": model(logits).sample(seed=jax.random.PRNGKey(0), seq_len=4),
        **{
            name: [f(scale).log_prob(point), jax.grad(lambda s, f=f: f(s).log_prob(point))(scale), f(scale).variance()]
            for name, f in densities.items()
        },
        "kl": full(scale).kl_divergence(low_rank(scale)),
    }
