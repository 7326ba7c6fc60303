"""Why a jitted function is traced or compiled: how its call differs from the nearest earlier one.

The ledger of compilations keeps the answers. A first call has none, so this is loaded for a second miss.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from xlamini.core import ShapedArray, first_difference
from xlamini.core.caching.memo import alive
from xlamini.core.flags.compile_flags import compile_key, compile_names
from xlamini.core.flags.config import trace_context_names
from xlamini.runtime import KeyType, key_words
from xlamini.runtime.meshes.program_placement import MeshPlacement
from xlamini.staging.compile.ledger import Cause, Function
from xlamini.staging.run.diagnostics.recreated_functions import CLEARED, cause_of_new, short
from xlamini.staging.run.jit.call_plan import CallPlan
from xlamini.staging.run.jit.entries import FIRST_OF_OWN
from xlamini.staging.run.programs import SharedCaches
from xlamini.staging.trace.arguments import parameter_names

if TYPE_CHECKING:
    from xlamini.staging.run.jit.jitted_function import Jitted

_NEAREST = 4
"""How many earlier calls are compared, the newest: more would take longer than tracing a small function."""
_LINES = 10
_NUMBERS = (bool, int, float, complex)

EVICTED = Cause(
    "evicted program",
    "",
    "it was compiled before, and dropped as there were too many programs",
    "pad its arguments to a few shapes",
)
_CAPTURED = Cause(
    "captured tracer",
    "",
    "it closes over a traced value of the function around it, so that each trace of that one traces it again",
    "pass the value as an argument",
)
_NEW_CONTEXT = Cause(
    "context", "", "a flag or a context has been defined since, and is part of every call", "define it before the calls"
)


# --- a trace


def cause_of_trace(jitted: Jitted, key: tuple[Any, ...], plan: CallPlan, function: Function, is_own: bool) -> Cause:
    """Why a call is traced; `key` is that of `Jitted.trace`, `function` what the ledger knows the function by."""
    if is_own:
        return _nearest(key, plan, jitted) or FIRST_OF_OWN
    cause = _seen_before(jitted.caches, key) or _nearest(key, plan, jitted)
    return cause or cause_of_new(jitted.fun, function, jitted.options)


def _seen_before(caches: SharedCaches, key: tuple) -> Cause | None:
    """The cause for a call that was traced before, and whose trace is gone."""
    seen = caches.seen.get(hash(key))
    if seen is not None and hash(key) in map(hash, list(caches.traces)):
        return None  # another key with this hash, which does not tell the keys of dicts apart
    if seen is None and (caches.traces or not caches.seen):
        return None
    if all(s.captures_tracers for s in ([seen] if seen else caches.seen.values())):
        return _CAPTURED
    return EVICTED if caches.said_many else CLEARED


def _nearest(key: tuple[Any, ...], plan: CallPlan, jitted: Jitted) -> Cause | None:
    """The differences from the earlier call with the fewest; one of the same structure is nearer than others."""
    newest = alive(jitted.caches.traces)[: -_NEAREST - 1 : -1]
    if not newest:
        return None
    nearest = min(newest, key=lambda before: _distance(before, key))
    found = list(_differences(nearest, key, plan, jitted)) or [_NEW_CONTEXT]
    more = [f"{len(found) - _LINES} more differences"] if len(found) > _LINES else []
    return found[0]._replace(also=(*(cause.text for cause in found[1:_LINES]), *more))


def _distance(before: tuple, now: tuple) -> tuple[bool, int]:
    """Whether the structures differ, and how many leaves and other parts of the keys do."""
    others = sum(_differ(old, new) for old, new in zip(before[2:], now[2:], strict=True))
    if before[0] != now[0]:
        return True, others
    return False, others + sum(old is not new for old, new in zip(before[1], now[1], strict=True))  # types are interned


def _differ(old: Any, new: Any) -> bool:
    """Whether parts of keys differ, which may hold numbers of NumPy's: these do not compare to tuples."""
    if type(old) is not type(new):
        return True
    if isinstance(old, tuple):
        return len(old) != len(new) or any(map(_differ, old, new))
    return old != new


def _differences(before: tuple, now: tuple, plan: CallPlan, jitted: Jitted) -> Iterator[Cause]:
    """How the keys of two calls differ: contexts first, as types may follow from them."""
    (tree, avals, statics, flags, axes), (new_tree, new_avals, new_statics, new_flags, new_axes) = before, now
    seen = jitted.caches.seen.get(hash(before))
    elsewhere = seen is not None and seen.thread != threading.get_ident()
    if flags != new_flags:
        for name, old, new in zip(trace_context_names(), flags, new_flags, strict=False):
            if old != new:
                yield _of_flag(name, old, new, elsewhere)
    if axes != new_axes:
        text = f"the named axes around the call are {_axes(new_axes)}, before {_axes(axes)}"
        yield Cause("named axes", _axes(new_axes), text, "call it under the same axes, or jit what is around it")
    yield from _of_statics(statics, new_statics, jitted)
    if tree != new_tree:
        yield _of_structure(tree, new_tree, plan, jitted)
        return
    for i, (leaf, old, new) in enumerate(zip(plan.leaves, avals, new_avals, strict=True)):
        if old != new:
            yield _of_leaf(plan.names[i], leaf, old, new)


def _axes(axes: Any) -> str:
    return ", ".join(str(getattr(axis, "name", axis)) for axis in axes) or "none"


def _of_flag(name: str, old: Any, new: Any, elsewhere: bool) -> Cause:
    text = f"flag or context {name} is {new!r}, before {old!r}"
    if "mesh" in name:
        return Cause("mesh context", name, text, "enter the mesh once, around all calls")
    if elsewhere:
        edit = f"set it for all threads: config.update({name!r}, ...)"
        return Cause("flag of a thread", name, f"{text} in another thread", edit)
    return Cause("flag", name, text, f"set {name} once, before the first call")


def _of_statics(before: tuple | None, now: tuple | None, jitted: Jitted) -> Iterator[Cause]:
    if before is None or now is None:
        return
    old, new = dict(before[0]), dict(now[0])
    parameter = parameter_names(jitted.fun)
    for where in dict.fromkeys([*old, *new]):
        name = where if isinstance(where, str) else parameter(where)
        if where not in old or where not in new:
            texts = [_static(values[where]) if where in values else "not given" for values in (new, old)]
            yield _of_value(name, *texts)
        elif _differ(old[where], new[where]):
            yield _of_static(name, new[where], old[where])


def _of_static(name: str, new: Any, old: Any) -> Cause:
    if type(new) is not type(old):
        texts = [f"{_static(value)} of type {type(value).__name__}" for value in (new, old)]
        edit = f"convert {name} to one type before the call"
        return Cause("static type", name, f"static argument {name!r} is {texts[0]}, before {texts[1]}", edit)
    if type(new).__eq__ is object.__eq__:
        text = f"static argument {name!r} is another {short(new)}, and such objects compare by identity"
        edit = "pass the same object, or give its class __eq__ and __hash__, as a frozen dataclass has them"
        return Cause("static identity", name, text, edit)
    return _of_value(name, _static(new), _static(old))


def _of_value(name: str, new: str, old: str) -> Cause:
    text = f"static argument {name!r} is {new}, before {old}"
    edit = f"leave {name} out of static_argnames, if it is a number that decides no shape; else call with few values"
    return Cause("static value", name, text, edit)


def _static(value: Any) -> str:
    """A static argument as a text; its class may have a __repr__ that fails."""
    with suppress(Exception):
        text = " ".join(repr(value).split())
        return text if len(text) <= 60 else f"{text[:60]}…"
    return short(value)


def _of_structure(old: Any, new: Any, plan: CallPlan, jitted: Jitted) -> Cause:
    """The cause for arguments of another structure; the trees are of `(args, kwargs)`."""
    (old_args, old_kwargs), (new_args, new_kwargs) = old.children(), new.children()
    parameter = parameter_names(jitted.fun)
    for i, (one, other) in enumerate(zip(old_args.children(), new_args.children(), strict=False)):
        if one != other:
            return _of_tree(parameter(i if plan.positions is None else plan.positions[i]), one, other)
    counts = [len(tree.children()) for tree in (old_args, new_args, old_kwargs, new_kwargs)]
    if counts[0] != counts[1]:
        return _of_count(counts)
    text = first_difference(new_kwargs, old_kwargs, ("kwargs", "before kwargs"))
    return _named(text or "", "kwargs")


def _of_count(counts: Sequence[int]) -> Cause:
    old, new, old_named, new_named = counts
    text = f"{new} arguments are given by position and {new_named} by name, before {old} and {old_named}"
    if old + old_named == new + new_named:
        return Cause("position or name", "args", text, "pass each argument in the same way in all calls")
    return Cause("number of arguments", "args", text, "give the same arguments in all calls")


def _of_tree(name: str, old: Any, new: Any) -> Cause:
    return _named(first_difference(new, old, (name, f"before {name}")) or "", name)


def _named(text: str, name: str) -> Cause:
    path = text.removeprefix("before ").partition(" is ")[0].partition(" has ")[0] or name
    if " is None" in text:
        edit = f"pass an array for {path} in every call, such as zeros, or always None"
        return Cause("None or array", path, text, edit)
    return Cause("structure", path, f"the arguments have another structure: {text}", "give containers of one structure")


def _of_leaf(name: str, leaf: Any, old: ShapedArray, new: ShapedArray) -> Cause:
    text = f"{name} is {_type(new)}, before {_type(old)}"
    kind, edit = _kind_of_leaf(leaf, old, new)
    return Cause(kind, name, text, edit.format(name=name, dtype=old.dtype, shape=_room_for(old, new)))


def _kind_of_leaf(leaf: Any, old: ShapedArray, new: ShapedArray) -> tuple[str, str]:
    """The class of the cause for an argument of another type, and the edit; the first that holds."""
    has_keys = isinstance(old.dtype, KeyType) or isinstance(new.dtype, KeyType)
    rows = (
        (has_keys and old.dtype != new.dtype, "key type", "make all keys by random.key(seed), with one impl"),
        (type(leaf) in _NUMBERS and not old.weak_type, "Python scalar", "pass jnp.asarray({name}, '{dtype}')"),
        (old.dtype != new.dtype, "dtype", "convert it before the call: {name}.astype('{dtype}')"),
        (old.ndim != new.ndim, "shape", "give {name} as many axes in all calls"),
        (old.shape != new.shape, "shape", "pad {name} to a few shapes, such as {shape}"),
        (old.weak_type != new.weak_type, "weak type", "give it a dtype at its source: jnp.asarray({name}, '{dtype}')"),
        (old.memory_space != new.memory_space, "memory space", "device_put {name} to one memory, before the loop"),
        (True, "sharding", "device_put {name} with one sharding, before the loop"),
    )
    return next((kind, edit) for holds, kind, edit in rows if holds)


def _room_for(old: ShapedArray, new: ShapedArray) -> tuple[Any, ...]:
    """The least shape to which both can be padded; symbolic sizes, perhaps of two scopes, are not compared."""
    return tuple(max(n, m) if type(n) is type(m) is int else n for n, m in zip(old.shape, new.shape, strict=False))


def _type(aval: ShapedArray) -> str:
    text = f"{'weakly typed ' * aval.weak_type}{aval.str_short(short_dtypes=False)}"
    return f"{text} with sharding {aval.explicit_sharding}" if aval.explicit_sharding else text


# --- a program of a trace that is known


def cause_of_program(jitted: Jitted, traced: Any, plan: CallPlan, device: Any) -> Cause:
    """Why a trace that is known is compiled: for other devices or flags, or for the first time."""
    structure = jitted.structure(traced)
    earlier = [key for key in alive(jitted.owner.programs) if key.structure == structure]
    if not earlier:
        seen = jitted.caches.seen.get(hash(plan.trace_key()))
        return EVICTED if jitted.caches.said_many or seen is None else seen.cause
    before = earlier[-1]
    changed = zip(compile_names, before.compile_flags, compile_key(), strict=True)
    for name, old, new in changed:
        if old != new:
            return Cause("compiler flag", name, f"flag {name} is {new!r}, before {old!r}", f"set {name} once")
    return _of_place(before.device, device, traced, plan)


def _of_place(before: Any, now: Any, traced: Any, plan: CallPlan) -> Cause:
    names = [*["a captured array"] * len(traced.captured), *plan.names]
    if isinstance(before, MeshPlacement) and isinstance(now, MeshPlacement):
        for name, old, new in zip(names, before.ins, now.ins, strict=False):
            if old != new:
                return _of_sharding(name, old, new)
    leaves = zip(names, [*traced.captured, *plan.leaves], strict=True)
    committed = [(name, x) for name, x in leaves if getattr(key_words(x), "committed", False)]
    if isinstance(now, MeshPlacement) and committed:
        return _of_sharding(committed[0][0], before, committed[0][1].sharding)
    if not committed:
        text = f"it runs on {now}, the default device, before on {before}"
        return Cause("default device", "default_device", text, "set default_device once, before the first call")
    name = committed[0][0]
    text = f"{name} is on {now}, before it ran on {before}"
    return Cause("device", name, text, f"device_put {name} to one device; each device has a program of its own")


def _of_sharding(name: str, old: Any, new: Any) -> Cause:
    text = f"{name} has sharding {new}, before {old}"
    return Cause("sharding", name, text, f"device_put {name} with one sharding, before the loop, or set in_shardings")
