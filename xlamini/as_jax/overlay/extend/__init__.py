"""`jax.extend`: what libraries that go beneath the public functions use."""

from typing import Final

from xlamini.as_jax.missing_names import fall_through

__getattr__: Final = fall_through(__name__)
