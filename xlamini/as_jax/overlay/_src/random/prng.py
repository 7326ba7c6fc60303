"""`jax._src.random.prng`: the classes of keys and of their dtypes."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.runtime.keys import KeyType as KeyType, PRNGKeyArray as PRNGKeyArray

KeyTy = KeyType
__getattr__ = fall_through(__name__)
