"""Hooks: functions of upper layers that lower layers call."""
from __future__ import annotations

import pytest

import xlamini.numpy.refs  # noqa: F401  (installs the last hooks)
from xlamini.core import hooks
from xlamini.core.program.bindable import primitives
from xlamini.core.program.primitive import CallLike


def test_every_hook_is_installed() -> None:
    optional = {"call_copied", "handed_out", "primitive_made", "public_function"}  # of as_jax alone
    own = [name for name in hooks._NAMES - optional if getattr(hooks, name).__module__ == hooks.__name__]
    assert own == []


def test_a_hook_that_is_not_installed_raises() -> None:
    with pytest.raises(RuntimeError, match="hook 'evaluate' is called before it is installed"):
        hooks._not_installed("evaluate")()


def test_only_hooks_can_be_installed() -> None:
    with pytest.raises(TypeError, match="no such hook: evalute"):
        hooks.install(evalute=print)


def test_only_call_like_primitives_name_the_jaxpr_that_they_call() -> None:
    assert [p for p in primitives if hasattr(p, "called") != isinstance(p, CallLike)] == []
