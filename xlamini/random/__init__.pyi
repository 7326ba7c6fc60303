# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.random.binomial import binomial as binomial, multinomial as multinomial
from xlamini.random.continuous import (
    cauchy as cauchy, exponential as exponential, gumbel as gumbel, laplace as laplace, logistic as logistic,
    pareto as pareto, rayleigh as rayleigh, triangular as triangular, weibull_min as weibull_min,
)
from xlamini.random.discrete import (
    bernoulli as bernoulli, categorical as categorical, geometric as geometric, rademacher as rademacher,
)
from xlamini.random.gamma import gamma as gamma, loggamma as loggamma, random_gamma_p as random_gamma_p
from xlamini.random.gamma_family import (
    ball as ball, beta as beta, chisquare as chisquare, dirichlet as dirichlet, f as f,
    generalized_normal as generalized_normal, t as t,
)
from xlamini.random.integers import randint as randint
from xlamini.random.keys import (
    clone as clone, fold_in as fold_in, Key as Key, key as key, key_data as key_data,
    key_dtype as key_dtype, key_impl as key_impl, PRNGKey as PRNGKey, split as split, wrap_key_data as wrap_key_data,
)
from xlamini.random.matrices import multivariate_normal as multivariate_normal, orthogonal as orthogonal
from xlamini.random.normal import lognormal as lognormal, normal as normal, truncated_normal as truncated_normal
from xlamini.random.normal_family import double_sided_maxwell as double_sided_maxwell, maxwell as maxwell, wald as wald
from xlamini.random.permutation import choice as choice, permutation as permutation
from xlamini.random.poisson import poisson as poisson
from xlamini.random.uniform import bits as bits, uniform as uniform
