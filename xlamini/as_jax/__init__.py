"""`import jax` in other people's files, answered by xlamini: importing this module turns it on.

    import xlamini.as_jax
    import flax.linen as nn  # its `import jax` is xlamini

`python -m xlamini run script.py`, `pytest -p xlamini.as_jax` and the wheel of `python -m xlamini jax-wheel DIR` do the
same without a line in the program. See docs/dropin.md.
"""

from xlamini.as_jax.switch import turn_on as _turn_on

_turn_on()
