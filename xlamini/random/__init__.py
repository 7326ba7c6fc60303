"""Random numbers, under the names JAX users know as `jax.random`: the same keys give the same numbers.

There is no hidden state: a key is a value, `split` makes independent keys of it, and a draw depends on its key alone.
"""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.random import key_arrays as _key_arrays
from xlamini.random.binomial import binomial as binomial
from xlamini.random.binomial import multinomial as multinomial
from xlamini.random.continuous import cauchy as cauchy
from xlamini.random.continuous import exponential as exponential
from xlamini.random.continuous import gumbel as gumbel
from xlamini.random.continuous import laplace as laplace
from xlamini.random.continuous import logistic as logistic
from xlamini.random.continuous import pareto as pareto
from xlamini.random.continuous import rayleigh as rayleigh
from xlamini.random.continuous import triangular as triangular
from xlamini.random.continuous import weibull_min as weibull_min
from xlamini.random.discrete import bernoulli as bernoulli
from xlamini.random.discrete import categorical as categorical
from xlamini.random.discrete import geometric as geometric
from xlamini.random.discrete import rademacher as rademacher
from xlamini.random.gamma import gamma as gamma
from xlamini.random.gamma import loggamma as loggamma
from xlamini.random.gamma import random_gamma_p as random_gamma_p
from xlamini.random.gamma_family import ball as ball
from xlamini.random.gamma_family import beta as beta
from xlamini.random.gamma_family import chisquare as chisquare
from xlamini.random.gamma_family import dirichlet as dirichlet
from xlamini.random.gamma_family import f as f
from xlamini.random.gamma_family import generalized_normal as generalized_normal
from xlamini.random.gamma_family import t as t
from xlamini.random.integers import randint as randint
from xlamini.random.keys import PRNGKey as PRNGKey
from xlamini.random.keys import clone as clone
from xlamini.random.keys import fold_in as fold_in
from xlamini.random.keys import key as key
from xlamini.random.keys import key_data as key_data
from xlamini.random.keys import key_dtype as key_dtype
from xlamini.random.keys import key_impl as key_impl
from xlamini.random.keys import split as split
from xlamini.random.keys import wrap_key_data as wrap_key_data
from xlamini.random.matrices import multivariate_normal as multivariate_normal
from xlamini.random.matrices import orthogonal as orthogonal
from xlamini.random.normal import lognormal as lognormal
from xlamini.random.normal import normal as normal
from xlamini.random.normal import truncated_normal as truncated_normal
from xlamini.random.normal_family import double_sided_maxwell as double_sided_maxwell
from xlamini.random.normal_family import maxwell as maxwell
from xlamini.random.normal_family import wald as wald
from xlamini.random.permutation import choice as choice
from xlamini.random.permutation import permutation as permutation
from xlamini.random.poisson import poisson as poisson
from xlamini.random.uniform import bits as bits
from xlamini.random.uniform import uniform as uniform

_edge_of_face(globals())
