"""Turning the answer on: the finder goes in front of all others."""
from __future__ import annotations

import sys
import warnings
from importlib import import_module

from xlamini.as_jax.finder import OVERLAY, JaxFinder
from xlamini.as_jax.jaxprs.install import install
from xlamini.as_jax.names import rename, use_jax_names
from xlamini.core.flags.jax_flags import check_static_indices, warn_of_narrowing
from xlamini.core.real_jax import installed_jax


def turn_on() -> None:
    """Answer `import jax` from now on.

    Libraries written for JAX rely on its meaning of indices out of bounds, and their tests take a warning that JAX does
    not give for an error, so these checks are off by default.
    """
    where = installed_jax()
    if where is not None:
        warnings.warn(
            f"jax is installed too ({where}); in this process `import jax` gives xlamini", RuntimeWarning, stacklevel=3
        )
    check_static_indices.set_default(False)
    warn_of_narrowing.set_default(False)
    install()
    jax = import_module(OVERLAY)
    sys.meta_path.insert(0, JaxFinder())
    use_jax_names()
    sys.modules["jax"] = jax  # if there is one, it is the wheel, which is importing this
    rename(jax, "jax")
