"""Checkpoint policies: predicates that select the values a checkpointed function stores for the backward pass.

`policy(primitive, *avals, **params)` is called for each equation, and returns True (or `Saveable`) if its results may
be stored, False (or `Recompute`) if not. Policies with parameters compare by value, so that equal programs have equal
cache keys.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, NamedTuple

from xlamini.core.program.memory_space import Space, space_in_program
from xlamini.primitives import dot_general_p
from xlamini.staging import check_callable
from xlamini.transforms.remat.checkpoint_name import name_p

Policy = Callable[..., Any]


class Answer:
    """A named return value of a policy, in place of True or False."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


Saveable: Final = Answer("Saveable")
"""The answer of a policy that a value may be stored; True means the same.

>>> from xlamini.ad_checkpoint import Recompute, Saveable, saved_residuals
>>> def policy(primitive, *avals, **params):
...     return Saveable if primitive.name == "sin" else Recompute
>>> f = xlamini.checkpoint(lambda x: jnp.cos(jnp.sin(x)), policy=policy)
>>> [residual.origin[:13] for residual in saved_residuals(f, 1.0)]
['output of sin', 'from the argu']
"""
Recompute: Final = Answer("Recompute")
"""The answer of a policy that a value is computed again in the backward pass; False means the same.

>>> from xlamini.ad_checkpoint import Recompute, saved_residuals
>>> f = xlamini.checkpoint(lambda x: jnp.cos(jnp.sin(x)), policy=lambda *_, **params: Recompute)
>>> [residual.origin for residual in saved_residuals(f, 1.0)]
['from the argument x']
"""


class Offloadable(NamedTuple):
    """The answer that a value may be stored in another memory: moved from `src` to `dst`, and back when it is needed.

    Both are memory kinds, "device" or "pinned_host".

    >>> from xlamini.ad_checkpoint import Offloadable, saved_residuals
    >>> def policy(primitive, *avals, **params):
    ...     return Offloadable("device", "pinned_host") if primitive.name == "sin" else False
    >>> f = xlamini.checkpoint(lambda x: jnp.cos(jnp.sin(x)), policy=policy)
    >>> [residual.aval for residual in saved_residuals(f, jnp.ones(3))]
    [ShapedArray(float32<host>[3]), ShapedArray(float32[3])]
    """

    src: str
    dst: str


class Parametrised:
    """A policy with parameters, equal by value: `rule(*parameters, primitive, *avals, **params)`."""

    __name__: str
    parameters: tuple[Hashable, ...]
    rule: Policy

    def __init__(self, rule: Policy, parameters: tuple[Hashable, ...], name: str):
        self.rule, self.parameters, self.__name__ = rule, parameters, name

    def __call__(self, primitive: Any, *avals: Any, **params: Any) -> Any:
        return self.rule(*self.parameters, primitive, *avals, **params)

    def __eq__(self, other: object) -> bool:
        return type(other) is Parametrised and (self.rule, self.parameters) == (other.rule, other.parameters)

    def __hash__(self) -> int:
        return hash((self.rule, self.parameters))

    def __repr__(self) -> str:
        return self.__name__


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Store all residuals, as without `checkpoint`.

    >>> everything_saveable(xlamini.lax.sin)
    True
    """
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Store only the arguments, as without a policy.

    >>> nothing_saveable(xlamini.lax.dot_general_p)
    False
    """
    return False


def dots_saveable(primitive: Any, *_: Any, **__: Any) -> bool:
    """Store the results of matrix products, which are the most expensive to recompute.

    >>> dots_saveable(xlamini.lax.dot_general_p)
    True
    """
    return primitive is dot_general_p


def dots_with_no_batch_dims_saveable(primitive: Any, *_: Any, **params: Any) -> bool:
    """Store the results of matrix products without batch dimensions: in a transformer, the products with weights.

    >>> dots_with_no_batch_dims_saveable(xlamini.lax.dot_general_p, dimension_numbers=(((1,), (0,)), ((), ())))
    True
    """
    return primitive is dot_general_p and not any(params["dimension_numbers"][1])


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Store the values that `checkpoint_name` gave one of these names.

    >>> save_only_these_names("hidden", "scores")
    save_only_these_names('hidden', 'scores')
    """
    return _by_name("save_only_these_names", _named, names_which_can_be_saved)


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Store the values that `checkpoint_name` gave a name, except these names.

    >>> save_any_names_but_these("scores")
    save_any_names_but_these('scores')
    """
    return _by_name("save_any_names_but_these", _named_otherwise, names_not_to_save)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Store any value, named or not, except the values with these names.

    `checkpoint_name` returns a new value: name a value where it is computed, and use only the named value.

    >>> save_anything_except_these_names("scores")
    save_anything_except_these_names('scores')
    """
    return _by_name("save_anything_except_these_names", _not_named, names_not_to_save)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Store the values that either policy allows.

    >>> save_from_both_policies(dots_saveable, save_only_these_names("hidden"))
    save_from_both_policies(dots_saveable, save_only_these_names('hidden'))
    """
    for policy in (policy_1, policy_2):
        check_policy("save_from_both_policies", policy)
    name = f"save_from_both_policies({_name(policy_1)}, {_name(policy_2)})"
    return Parametrised(_either, (policy_1, policy_2), name)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Store the results of matrix products without batch dimensions in another memory.

    `offload_src` and `offload_dst` are memory kinds: the values are in "device", and go to "pinned_host".

    >>> offload_dot_with_no_batch_dims("device", "pinned_host")
    offload_dot_with_no_batch_dims('device', 'pinned_host')
    """
    name = f"offload_dot_with_no_batch_dims({offload_src!r}, {offload_dst!r})"
    return Parametrised(_offloaded_dot, (Offloadable(offload_src, offload_dst),), name)


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Iterable[str],
    names_which_can_be_offloaded: Iterable[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Store the values with some names, and those with other names in another memory.

    `offload_src` and `offload_dst` are memory kinds: the values are in "device", and go to "pinned_host".

    >>> save_and_offload_only_these_names(names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"],
    ...     offload_src="device", offload_dst="pinned_host")
    save_and_offload_only_these_names(['a'], ['b'], 'device', 'pinned_host')
    """
    what = "save_and_offload_only_these_names"
    saved, moved = _names(what, names_which_can_be_saved), _names(what, names_which_can_be_offloaded)
    if saved & moved:
        raise ValueError(
            f"{what}: {sorted(saved & moved)} are both among the names to save and to offload; leave each in one"
        )
    name = f"{what}({sorted(saved)}, {sorted(moved)}, {offload_src!r}, {offload_dst!r})"
    return Parametrised(_saved_or_moved, (saved, moved, Offloadable(offload_src, offload_dst)), name)


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def check_policy(what: str, policy: Any) -> None:
    """TypeError unless `policy` is a hashable policy; a function that makes policies is none."""
    check_callable(f"{what}: policy", policy)
    if getattr(policy, "__name__", None) in _MAKERS:
        raise TypeError(
            f"{what}: {policy.__name__} makes a policy, but is none; call it, as in {_MAKERS[policy.__name__]}"
        )
    try:
        hash(policy)
    except TypeError:
        raise TypeError(
            f"{what}: the policy, of type {type(policy).__name__}, cannot be hashed; give its class a __hash__ "
            "that goes with its __eq__, or pass a function"
        ) from None


def decision(answer: Any, policy: Policy, primitive: Any) -> bool | Space:
    """A policy's answer: whether the results are stored, or in which memory; TypeError for anything else."""
    if answer is True or answer is Saveable:
        return True
    if answer is False or answer is Recompute:
        return False
    if isinstance(answer, Offloadable):
        return space_in_program(f"checkpoint: the policy {_name(policy)}", answer.dst)
    raise TypeError(
        f"checkpoint: the policy {_name(policy)} answered {answer!r} of type {type(answer).__name__} for {primitive}; "
        "a policy returns True to save the results and False to compute them again"
    )


def _name(policy: Policy) -> str:
    return getattr(policy, "__name__", repr(policy))


def _names(what: str, names: Iterable[Any]) -> frozenset[str]:
    found = tuple(names)
    wrong = next((n for n in found if not isinstance(n, str)), None)
    if wrong is not None or isinstance(names, str):
        got = names if wrong is None else wrong
        raise TypeError(
            f"{what}: names are strings, each an argument of its own, got {got!r} of type {type(got).__name__}"
        )
    return frozenset(found)


def _by_name(what: str, rule: Policy, names: tuple[Any, ...]) -> Policy:
    known = _names(what, names)
    return Parametrised(rule, (known,), f"{what}({', '.join(map(repr, sorted(known)))})")


def _named(names: frozenset[str], primitive: Any, *_: Any, **params: Any) -> bool:
    return primitive is name_p and params["name"] in names


def _named_otherwise(names: frozenset[str], primitive: Any, *_: Any, **params: Any) -> bool:
    return primitive is name_p and params["name"] not in names


def _not_named(names: frozenset[str], primitive: Any, *_: Any, **params: Any) -> bool:
    return not _named(names, primitive, **params)


def _either(policy_1: Policy, policy_2: Policy, primitive: Any, *avals: Any, **params: Any) -> Any:
    first = policy_1(primitive, *avals, **params)
    return policy_2(primitive, *avals, **params) if first is False or first is Recompute else first


def _offloaded_dot(answer: Offloadable, primitive: Any, *_: Any, **params: Any) -> Any:
    return answer if dots_with_no_batch_dims_saveable(primitive, **params) else False


def _saved_or_moved(
    saved: frozenset[str], moved: frozenset[str], answer: Offloadable, primitive: Any, *_: Any, **params: Any
) -> Any:
    return answer if _named(moved, primitive, **params) else _named(saved, primitive, **params)


_MAKERS = {
    "save_only_these_names": "save_only_these_names('a')",
    "save_any_names_but_these": "save_any_names_but_these('a')",
    "save_anything_except_these_names": "save_anything_except_these_names('a')",
    "save_from_both_policies": "save_from_both_policies(policy_1, policy_2)",
    "offload_dot_with_no_batch_dims": "offload_dot_with_no_batch_dims('device', 'pinned_host')",
    "save_and_offload_only_these_names": "save_and_offload_only_these_names(names_which_can_be_saved=…, …)",
}
