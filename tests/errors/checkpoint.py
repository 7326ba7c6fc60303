"""checkpoint, its policies and names."""

from __future__ import annotations

from typing import Any

from tests.support.error_rows import ones, row
from xlamini import ad_checkpoint, checkpoint, checkpoint_policies, grad, jit
from xlamini.errors import TracerBoolConversionError


def sign(x: Any) -> Any:
    return x if x > 0 else -x


def scaled(x: Any, mode: Any) -> Any:
    return x * 2


def product(x: Any) -> Any:
    return (x @ x).sum()


class Unhashable:
    """A policy that compares by value and cannot be hashed."""

    def __eq__(self, other: object) -> bool:
        return True

    def __call__(self, *_: Any, **__: Any) -> bool:
        return True


ROWS = [
    row(
        "control flow", lambda: checkpoint(sign)(1.0), TracerBoolConversionError, "while sign is traced",
        "the argument 'x'", "static_argnames of jit or checkpoint",
    ),
    row("control flow in grad", lambda: grad(checkpoint(sign))(1.0), TracerBoolConversionError, "argument 'x'"),
    row("no function", lambda: checkpoint(3), TypeError, "checkpoint takes a function, got 3 of type int"),
    row(
        "no array", lambda: checkpoint(scaled)(1.0, "a"), TypeError, "argument 'mode' of scaled is 'a'",
        "mark it static with static_argnames",
    ),
    row(
        "static_argnums", lambda: checkpoint(scaled, static_argnums=2), ValueError,
        "checkpoint: static_argnums has 2, but scaled takes 2 positional arguments",
    ),
    row(
        "static_argnames", lambda: checkpoint(scaled, static_argnames="kind"), ValueError,
        "checkpoint: static_argnames has 'kind'", "it takes x, mode",
    ),
    row("output", lambda: checkpoint(lambda x: {"a": "b"})(1.0), TypeError, "returned 'b' of type str at output['a']"),
    row("prevent_cse", lambda: checkpoint(sign, prevent_cse=(1,))(1.0), TypeError, "prevent_cse must be a bool", "1"),
    row(
        "prevent_cse length", lambda: checkpoint(sign, prevent_cse=(True, True))(1.0), ValueError,
        "prevent_cse is a tuple of length 2, but args is a tuple of length 1",
    ),
    row("policy", lambda: checkpoint(sign, policy="dots"), TypeError, "policy takes a function, got 'dots'"),
    row(
        "policy not made", lambda: checkpoint(sign, policy=checkpoint_policies.save_only_these_names), TypeError,
        "save_only_these_names makes a policy, but is none", "save_only_these_names('a')",
    ),
    row("policy unhashable", lambda: checkpoint(sign, policy=Unhashable()), TypeError, "Unhashable, cannot be hashed"),
    row(
        "policy's answer", lambda: grad(checkpoint(product, policy=lambda *_, **__: "dots"))(ones(2, 2)), TypeError,
        "the policy <lambda> answered 'dots' of type str for", "returns True to save",
    ),
    row(
        "offload",
        lambda: grad(checkpoint(product, policy=checkpoint_policies.offload_dot_with_no_batch_dims("device", "host")))(
            ones(2, 2)
        ),
        ValueError, "the policy offload_dot_with_no_batch_dims('device', 'host')", "'pinned_host', not 'host'",
    ),
    row(
        "names in a list", lambda: checkpoint_policies.save_only_these_names(["a", "b"]), TypeError,
        "save_only_these_names: names are strings, each an argument of its own, got ['a', 'b']",
    ),
    row(
        "names in both",
        lambda: checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a", "b"], names_which_can_be_offloaded=["b"], offload_src="x", offload_dst="y"
        ),
        ValueError, "['b'] are both among the names to save and to offload",
    ),
    row("name", lambda: ad_checkpoint.checkpoint_name(1.0, 2), TypeError, "name must be a string, got 2 of type int"),
    row(
        "named", lambda: jit(lambda x: ad_checkpoint.checkpoint_name({"a": x, "b": "c"}, "n"))(1.0), TypeError,
        "x['b']", "of checkpoint_name is 'c'",
    ),
    row("saved_residuals", lambda: ad_checkpoint.saved_residuals(1, 2.0), TypeError, "takes a function, got 1"),
    row(
        "print_saved_residuals", lambda: ad_checkpoint.print_saved_residuals(product, "a"), TypeError,
        "argument 'x' of product is 'a'",
    ),
]
