"""`jax.experimental.checkify`: checks of values that are known. Checked programs are not there yet."""
from __future__ import annotations

from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refusing
from xlamini.core.state import state

__getattr__ = fall_through(__name__)


class JaxRuntimeError(ValueError):
    """A check has failed. JAX's class of this name in this module is a ValueError too, unlike that of `jax.errors`."""


JaxException = JaxRuntimeError
ErrorCategory = str
Out = Any

user_checks = frozenset({"user"})
nan_checks = frozenset({"nan"})
div_checks = frozenset({"div"})
index_checks = frozenset({"index"})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks

_NO_PROGRAMS = "checked programs are not there yet; call check(...) outside of jit, grad and vmap"
checkify = refusing("jax.experimental.checkify.checkify", _NO_PROGRAMS)
check_error = refusing("jax.experimental.checkify.check_error", _NO_PROGRAMS)


class Error:
    """What a checked program returns beside its results."""

    def __init__(self, *args: Any, **kwargs: Any):
        checkify()


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Raise JaxRuntimeError unless `pred` holds everywhere; NotImplementedError while a function is traced."""
    if state.builder is not None:
        checkify()
    if not pred.all() if hasattr(pred, "all") else not pred:
        raise JaxRuntimeError(f"{msg.format(*fmt_args, **fmt_kwargs)} (`check` failed)")


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A check that acts in checked programs only, of which there are none."""
