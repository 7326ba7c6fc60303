"""Calls as flat leaves, for libraries that transform functions: `xlamini.api_util`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import PyTreeDef, ShapedArray, Values, example_of
from xlamini.core.pytree import check_treedef, prefix, treedef_children
from xlamini.staging.trace.arguments import avals_of, check_callable, replaced


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of an array, a number or a ShapeDtypeStruct; TypeError for anything else.

    >>> shaped_abstractify(np.ones((2, 3), "float32"))
    ShapedArray(float32[2,3])
    """
    return avals_of([x], ("x",), "shaped_abstractify")[0]


def flatten_axes(
    name: str, treedef: PyTreeDef, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list[Any]:
    """An entry of `axis_tree`, a prefix of the structure, for each leaf; ValueError if it is no prefix.

    With `kws` the structure is that of (args, kwargs), and `axis_tree` is of args; leaves of kwargs get 0.
    `tupled_args` is accepted for compatibility.

    >>> flatten_axes("in_axes", xlamini.tree.structure((1, [2, 3])), (0, None))
    [0, None, None]
    """
    check_treedef("flatten_axes", "treedef", treedef)
    return prefix.flatten_axes(name, (axis_tree, 0) if kws else axis_tree, treedef)


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: PyTreeDef, kws: bool = True
) -> tuple[bool, ...]:
    """Whether each leaf belongs to a donated argument; `in_tree` is the structure of (args, kwargs).

    Without `kws` it is the structure of args.

    >>> donation_vector((0,), (), xlamini.tree.structure(((1, 2), {"a": 3})))
    (True, False, False)
    """
    check_treedef("donation_vector", "in_tree", in_tree)
    args, *kwargs = treedef_children(in_tree) if kws else [in_tree]
    donated = [i in donate_argnums for i, arg in enumerate(treedef_children(args)) for _ in range(arg.num_leaves)]
    for tree in kwargs:
        named: dict[str, Any] = example_of(tree)
        children = zip(named, treedef_children(tree), strict=True)
        donated += [name in donate_argnames for name, child in children for _ in range(child.num_leaves)]
    return tuple(donated)


def rebase_donate_argnums(donate_argnums: Sequence[int], static_argnums: Sequence[int]) -> tuple[int, ...]:
    """The positions of donated arguments after the static ones have been taken out; ValueError for one that is both.

    >>> rebase_donate_argnums((1, 3), (0,))
    (0, 2)
    """
    if both := {*donate_argnums} & {*static_argnums}:
        raise ValueError(f"rebase_donate_argnums: the arguments {sorted(both)} are both donated and static")
    return tuple(sorted(n - sum(static < n for static in static_argnums) for n in donate_argnums))


def argnums_partial(
    f: Callable[..., Any],
    dyn_argnums: int | Sequence[int],
    args: Values,
    require_static_args_hashable: bool = True,
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of the arguments `dyn_argnums` alone, the others fixed, and the values of these arguments.

    ValueError for a position that is none, and for a fixed argument that cannot be hashed, unless
    `require_static_args_hashable` is False.

    >>> fun, values = argnums_partial(lambda a, b, c: (a, b, c), (0, 2), (1, 2, 3))
    >>> fun(*values), values
    ((1, 2, 3), (1, 3))
    """
    check_callable("argnums_partial", f)
    numbers = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    if not all(-len(args) <= n < len(args) for n in numbers):
        raise ValueError(f"argnums_partial: dyn_argnums {numbers} must be positions of the {len(args)} arguments")
    moving = [n % len(args) for n in numbers]
    for i, arg in enumerate(args):
        if require_static_args_hashable and i not in moving and getattr(type(arg), "__hash__", None) is None:
            raise ValueError(f"argnums_partial: the static argument {i} is a {type(arg).__name__}, which has no hash")

    def of_dynamic(*dynamic: Any, **kwargs: Any) -> Any:
        return f(*replaced(args, moving, dynamic), **kwargs)

    return of_dynamic, tuple(args[i] for i in moving)
