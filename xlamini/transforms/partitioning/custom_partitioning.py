"""custom_partitioning: a function whose division among the devices of a mesh the user writes."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Tracer, flatten_from_user, tree_leaves
from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.errors.api_boundary import api_boundary_methods
from xlamini.core.wrapping import wraps
from xlamini.staging import ArgNames, avals_of, check_callable, check_values, name_of, rebuilt
from xlamini.staging.trace.tracing import trace
from xlamini.transforms.partitioning.partitioning import Partitioning
from xlamini.transforms.partitioning.primitive import custom_partitioning_p
from xlamini.transforms.partitioning.sharding_rule import SdyShardingRule, parsed


class custom_partitioning:
    """A function of arrays that runs on shards: in a program over a mesh, `partition` says how it is divided.

    Args:
      fun: the function, which runs where there is no mesh, and whose results have its types everywhere.
      static_argnums: the positions of arguments that are passed to Python unchanged; also first to `partition`.

    Without it the compiler divides the operations of `fun` by itself, which for an FFI call, a sort or a Fourier
    transform may mean that every device gets the whole array. `def_partition` is called once, before the first call.
    Within `shard_map` it is `fun`. It has no derivative and no batching rule: wrap it with `custom_vjp` or
    `custom_vmap`.

    NotImplementedError for `grad`, `jvp` and `vmap` of it, ValueError for a call before `def_partition`, or of a `fun`
    that closes over arrays.

    >>> @custom_partitioning
    ... def double(x):
    ...     return 2 * x
    >>> def partition(mesh, arg_shapes, result_shape):
    ...     return mesh, lambda x: 2 * x, result_shape.sharding, (arg_shapes[0].sharding,)
    >>> _ = double.def_partition(partition, sharding_rule="i -> i")
    >>> double(xlamini.numpy.arange(3))
    Array([0, 2, 4], dtype=int32)
    """

    fun: Callable[..., Any]
    static_argnums: tuple[int, ...]

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] = ()):
        check_callable("custom_partitioning", fun)
        self.fun, self.static_argnums = fun, tuple(static_argnums)
        self.partition: Callable[..., Any] | None = None
        self.sharding_rule: Any = None
        self.propagates: bool = False
        """Whether it has callbacks of the older partitioner, which propagate shardings instead of a rule."""
        wraps(fun)(self)

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        **options: Any,
    ) -> Callable[..., Any]:
        """Say how the function is divided; returns `partition`.

        Args:
          partition: `partition(*static_args, mesh, arg_shapes, result_shape) -> (mesh, lower_fn, result_shardings,
            arg_shardings)`. The shapes are ShapeDtypeStructs with the shardings that the partitioner proposes, and the
            shardings returned are those that the function takes and returns: the partitioner moves operands there.
            `lower_fn` is the function of shards; its collectives name the axes of the mesh.
          infer_sharding_from_operands: accepted for compatibility, where there is a `sharding_rule`.
          propagate_user_sharding: as `infer_sharding_from_operands`.
          decode_shardings: accepted for compatibility; shardings are always NamedShardings.
          sharding_rule: which dimensions are divided alike, as "i k, k j -> i j", a SdyShardingRule, or a function
            `(*static_args, mesh, operand_types, result_types)` of types in MLIR that returns one of these, or a pair
            with a dict of options. None: the results are whole on every device.
          options: `reduction_factors`, `need_replication_factors` and `permutation_factors`, tuples of factors of a
            text, and the sizes of factors that are only in brackets.

        ValueError for a rule that cannot be read. With the callbacks alone, and no `sharding_rule`, calls raise
        NotImplementedError.
        """
        check_callable("def_partition: partition", partition)
        self.propagates = infer_sharding_from_operands is not None or propagate_user_sharding is not None
        if sharding_rule is None or isinstance(sharding_rule, SdyShardingRule) or callable(sharding_rule):
            if given := {name: value for name, value in options.items() if value != ()}:
                raise ValueError(f"def_partition: Unknown keyword arguments: {given}; only a rule in text has options")
            self.sharding_rule = sharding_rule
        else:
            self.sharding_rule = parsed(sharding_rule, **options)
        self.partition = partition
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fun)
        partition = self._partition_of(name)
        every = self._positional(args, kwargs)
        static = {i % len(every): every[i] for i in self.static_argnums}
        _check_static(static.values(), name)
        positions = [i for i in range(len(every)) if i not in static]
        operands = tuple(every[i] for i in positions)

        def of_operands(*dynamic: Any) -> Any:
            given = dict(zip(positions, dynamic, strict=True))
            return self.fun(*(static[i] if i in static else given[i] for i in range(len(every))))

        leaves, tree = flatten_from_user((operands, {}))
        names = ArgNames(self.fun, tree, positions)
        avals = avals_of(leaves, names, name, ", or name it in static_argnums")
        check_values(leaves, names, name)
        traced = trace(of_operands, tree, avals, None, names, name, reuse_equal=True)
        if traced.captured:
            raise ValueError(f"custom_partitioning: {name} closes over arrays; pass them as arguments")
        in_tree = flatten_from_user(operands)[1]
        rule, fixed = self.sharding_rule, tuple(every[i] for i in self.static_argnums)
        said = Partitioning(name, partition, rule, in_tree, traced.out_tree, fixed)
        return rebuilt(traced.out_tree, custom_partitioning_p.bind(*leaves, jaxpr=traced.jaxpr, partitioning=said))

    def _partition_of(self, name: str) -> Callable[..., Any]:
        """The user's function; an error before `def_partition`, or for one that gave no rule."""
        if self.partition is None:
            raise ValueError(f"custom_partitioning: {name} has no partition function yet; call {name}.def_partition")
        if self.propagates and self.sharding_rule is None:
            raise NotImplementedError(
                "Shardy is used, but sharding propagation callbacks instead of sharding_rule are provided: give "
                f"def_partition of {name} a sharding_rule, such as '... i -> ... i'"
            )
        return self.partition

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments by position, with defaults filled in."""
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        if bound.kwargs:
            raise TypeError(
                f"custom_partitioning: keyword arguments could not be resolved to positions: {sorted(bound.kwargs)}"
            )
        bound.apply_defaults()
        return bound.args


def _check_static(values: Any, name: str) -> None:
    if any(type(leaf) is Tracer for value in values for leaf in tree_leaves(value)):
        raise UnexpectedTracerError(
            f"custom_partitioning: a static argument of {name} is a traced value; leave it out of static_argnums"
        )


api_boundary_methods(custom_partitioning)
