"""What `def_partition` says of a function, as a param of its calls."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Partitioning:
    """The functions and structures by which a call is divided; equal for calls that are divided alike.

    `partition` is the user's function, `rule` its sharding rule (None, a SdyShardingRule or a function), `in_tree` and
    `out_tree` the structures of its arguments and result, `static_args` the arguments that are no arrays.
    """

    in_tree: Any
    out_tree: Any
    static_args: tuple[Any, ...]
    name: str
    partition: Callable[..., Any]
    rule: Any

    def __init__(
        self,
        name: str,
        partition: Callable[..., Any],
        rule: Any,
        in_tree: Any,
        out_tree: Any,
        static_args: tuple[Any, ...],
    ):
        self.name, self.partition, self.rule = name, partition, rule
        self.in_tree, self.out_tree, self.static_args = in_tree, out_tree, static_args
        self._key = (name, partition, rule, in_tree, out_tree, _hashable(static_args))

    def __eq__(self, other: object) -> bool:
        return type(other) is Partitioning and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return self.name


class _ById:
    """Arguments that cannot be hashed: equal to themselves only, and alive as long as the key."""

    def __init__(self, value: Any):
        self.value = value


def _hashable(values: tuple[Any, ...]) -> Any:
    try:
        hash(values)
    except TypeError:
        return _ById(values)
    return tuple((type(value), value) for value in values)
