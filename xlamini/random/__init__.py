"""Random numbers, under the names JAX users know as `jax.random`: the same keys give the same numbers.

There is no hidden state: a key is a value, `split` makes independent keys of it, and a draw depends on its key alone.
"""

from xlamini.core.edges import edge_of_face as _edge_of_face
from xlamini.random import key_arrays as _key_arrays
from xlamini.random.continuous import cauchy as cauchy
from xlamini.random.continuous import exponential as exponential
from xlamini.random.continuous import gumbel as gumbel
from xlamini.random.continuous import laplace as laplace
from xlamini.random.continuous import logistic as logistic
from xlamini.random.discrete import bernoulli as bernoulli
from xlamini.random.discrete import categorical as categorical
from xlamini.random.discrete import rademacher as rademacher
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
from xlamini.random.normal import lognormal as lognormal
from xlamini.random.normal import normal as normal
from xlamini.random.normal import truncated_normal as truncated_normal
from xlamini.random.permutation import choice as choice
from xlamini.random.permutation import permutation as permutation
from xlamini.random.uniform import bits as bits
from xlamini.random.uniform import uniform as uniform

_edge_of_face(globals())
