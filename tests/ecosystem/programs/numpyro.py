"""Programs of numpyro: NUTS on a hierarchical model, stochastic variational inference, and distributions."""
from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers, optim
from numpyro.distributions import constraints, transforms
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, autoguide, log_likelihood
from numpyro.infer.reparam import LocScaleReparam
from numpyro.infer.util import initialize_model, log_density, potential_energy

_EFFECTS = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
_ERRORS = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def _schools(effects=None):
    mean = numpyro.sample("mean", dist.Normal(0, 5))
    scale = numpyro.sample("scale", dist.HalfCauchy(5))
    with numpyro.plate("school", 8), handlers.reparam(config={"theta": LocScaleReparam(0)}):
        theta = numpyro.sample("theta", dist.Normal(mean, scale))
        numpyro.sample("observed", dist.Normal(theta, _ERRORS), obs=effects)


def nuts_on_eight_schools() -> dict[str, jax.Array]:
    """Two short chains of NUTS, one vectorized; the potential and its gradient; predictions and likelihoods."""
    mcmc = MCMC(NUTS(_schools, step_size=0.3), num_warmup=6, num_samples=4, num_chains=2, chain_method="vectorized",
                progress_bar=False)  # fmt: skip
    mcmc.run(jax.random.PRNGKey(0), _EFFECTS, extra_fields=("num_steps", "potential_energy"))
    samples = mcmc.get_samples()
    info = initialize_model(jax.random.PRNGKey(1), _schools, model_args=(_EFFECTS,))
    start = info.param_info.z
    energy = lambda z: potential_energy(_schools, (_EFFECTS,), {}, z)
    predicted = Predictive(_schools, samples)(jax.random.PRNGKey(2))["observed"]
    return {
        "steps": mcmc.get_extra_fields()["num_steps"],
        "mean": samples["mean"],
        "theta": samples["theta"][:2],
        "energy": jax.value_and_grad(energy)(start),
        "predicted": predicted[0],
        "likelihood": log_likelihood(_schools, samples, _EFFECTS)["observed"].sum(1)[:4],
    }


def variational_inference() -> dict[str, jax.Array]:
    """A logistic regression fitted with automatic guides by SVI; subsampling, a discrete site, handlers, a scan."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((60, 3)), jnp.float32)
    y = jnp.asarray(rng.random(60) < 1 / (1 + np.exp(-np.asarray(x) @ [1.5, -1.0, 0.0])), jnp.int32)

    def model(x, y):
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(3), 1).to_event(1))
        offset = numpyro.param("offset", 0.1)
        temperature = numpyro.param("temperature", 1.0, constraint=constraints.positive)
        with numpyro.plate("rows", 60, subsample_size=30) as rows:
            numpyro.sample("y", dist.Bernoulli(logits=(x[rows] @ weights + offset) / temperature), obs=y[rows])

    found = {}
    for name, guide in (("normal", autoguide.AutoNormal(model)), ("full", autoguide.AutoMultivariateNormal(model))):
        svi = SVI(model, guide, optim.Adam(0.05), Trace_ELBO(num_particles=4))
        ran = svi.run(jax.random.PRNGKey(0), 60, x, y, progress_bar=False)
        found[name] = {"losses": ran.losses[::15], **{k: ran.params[k] for k in sorted(ran.params)}}

    def mixture(data):
        means = numpyro.sample("means", dist.Normal(jnp.array([-2.0, 2.0]), 1).to_event(1))
        with numpyro.plate("data", len(data)):
            which = numpyro.sample("which", dist.Categorical(jnp.array([0.3, 0.7])), infer={"enumerate": "parallel"})
            numpyro.sample("x", dist.Normal(means[which], 1), obs=data)

    traced = handlers.trace(handlers.seed(handlers.condition(mixture, {"means": jnp.array([-1.0, 1.0])}), 0))
    trace = traced.get_trace(x[:6, 0])
    found["trace"] = [trace["which"]["value"], trace["x"]["fn"].log_prob(trace["x"]["value"])]
    which = trace["which"]["value"]
    density = lambda means: log_density(mixture, (x[:6, 0],), {}, {"means": means, "which": which})[0]
    found["density"] = jax.grad(density)(jnp.array([-1.0, 1.0]))
    return found


def distributions() -> dict[str, jax.Array]:
    """Samples, densities and gradients of distributions; transforms and their Jacobians; vmap over distributions."""
    x, key = jnp.array([0.4, 1.3, 2.2]), jax.random.PRNGKey(0)
    made = {
        "beta": lambda p: dist.Beta(p, 2.0),
        "gamma": lambda p: dist.Gamma(p, 1.5),
        "student": lambda p: dist.StudentT(p),
        "dirichlet": lambda p: dist.Dirichlet(p),
        "poisson": lambda p: dist.Poisson(p),
        "cauchy": lambda p: dist.Cauchy(p),
        "binomial": lambda p: dist.Binomial(10, logits=p),
        "exponential": lambda p: dist.Exponential(p),
        "negative_binomial": lambda p: dist.NegativeBinomial2(p, 2.0),
        "von_mises": lambda p: dist.VonMises(0.0, p),
        "lkj": lambda p: dist.LKJCholesky(3, p[0]),
        "low_rank": lambda p: dist.LowRankMultivariateNormal(p, p[:, None], p),
        "multivariate": lambda p: dist.MultivariateNormal(p, jnp.diag(p) + 0.1),
        "weibull": lambda p: dist.Weibull(p, p),
        "truncated": lambda p: dist.TruncatedNormal(p, 1.0, low=0.0),
        "zero_inflated": lambda p: dist.ZeroInflatedPoisson(0.2, p),
        "mixture": lambda p: dist.MixtureSameFamily(dist.Categorical(probs=p / p.sum()), dist.Normal(p, 1.0)),
        "transformed": lambda p: dist.TransformedDistribution(dist.Normal(p, 1.0), transforms.ExpTransform()),
        "walk": lambda p: dist.GaussianRandomWalk(p[0], 4),
        "inverse_gamma": lambda p: dist.InverseGamma(p + 1.0, p),
        "multinomial": lambda p: dist.Multinomial(7, probs=p / p.sum()),
        "wishart": lambda p: dist.Wishart(5.0, jnp.diag(p)),
    }
    found = {}
    for name, make in made.items():
        samples = make(x).sample(key, (2,))
        density = lambda p, make=make, samples=samples: make(p).log_prob(samples).sum()
        found[name] = [samples, jax.value_and_grad(density)(x)]
    for made in (transforms.StickBreakingTransform, transforms.CorrCholeskyTransform, transforms.OrderedTransform):
        bijection = made()
        jacobian = lambda v, t=bijection: t.log_abs_det_jacobian(v, t(v))
        found[made.__name__] = [bijection(x), bijection.inv(bijection(x)), jax.value_and_grad(jacobian)(x)]
    mapped = jax.vmap(lambda p: dist.Normal(p, 1.0))(x)
    return {**found, "mapped": mapped.log_prob(1.0), "kl": dist.kl_divergence(mapped, dist.Normal(0.0, 2.0))}
