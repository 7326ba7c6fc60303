"""Python asks a tracer for its number.

Where a transformation was called on concrete values (grad, jvp, vjp… outside jit), the builder knows the values of its
inputs. Then just the equations that lead to the variable are evaluated, and what they gave is remembered. Otherwise the
answer is an error that names the argument the value depends on.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from xlamini.core import hooks
from xlamini.core.errors import (
    ConcretizationTypeError,
    JAXTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.errors.frames import user_line
from xlamini.core.program.activity_analysis import differentiated_input
from xlamini.core.program.avals import Values
from xlamini.core.program.effects import more_than_observing
from xlamini.core.program.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Builder, Tracer, active, leaked


class UnknownValue(Exception):
    """There is no number: it depends on this input of this builder."""

    builder: Builder
    var: Var

    def __init__(self, builder: Builder, var: Var):
        self.builder, self.var = builder, var


def value_of(x: Any) -> Any:
    """The array behind a tracer; Unknown if it depends on a value that is not there yet."""
    while type(x) is Tracer:
        x = _evaluate(x.builder, x.variable)
    return x


def _evaluate(builder: Builder, var: Atom) -> Any:
    captured = dict(builder.captured.values())
    with active(None):
        for eqn in _needed(builder, captured, [var]):
            inputs = [_read(builder, captured, a) for a in eqn.invars]
            outs = eqn.primitive.bind(*inputs, **eqn.params)
            results = outs if eqn.primitive.multiple_results else [outs]
            builder.known.update(zip(eqn.outvars, results, strict=True))
        return _read(builder, captured, var)


def program_of(tracer: Tracer) -> tuple[Jaxpr, list[Any]]:
    """The jaxpr from its builder's inputs to this tracer, and the values of its constvars; Unknown after an effect."""
    builder = tracer.builder
    fixed = {**dict(builder.captured.values()), **builder.known}
    eqns = _needed(builder, {**fixed, **dict.fromkeys(builder.inputs)}, [tracer.variable])
    consts = list(fixed.values())
    return Jaxpr(list(fixed), builder.inputs, [tracer.variable], eqns, builder.name, consts), consts


def values_together(values: Values) -> list[Any]:
    """The arrays behind tracers of the active builder, computed by one program, and the other values as they are."""
    builder: Any = state.builder
    captured = dict(builder.captured.values())
    wanted = [x.variable for x in values if type(x) is Tracer and type(x.variable) is Var]
    eqns = _needed(builder, captured, wanted)
    if eqns:
        made = {v for eqn in eqns for v in eqn.outvars}
        invars = list(dict.fromkeys(a for eqn in eqns for a in eqn.invars if type(a) is Var and a not in made))
        outvars = [v for v in dict.fromkeys(wanted) if v in made]
        inputs = [_read(builder, captured, v) for v in invars]
        with active(None):
            outs = hooks.evaluate_jaxpr(Jaxpr([], invars, outvars, eqns, builder.name), inputs)
        builder.known.update(zip(outvars, outs, strict=True))
    return list(map(value_of, values))


def _needed(builder: Builder, captured: dict[Var, Any], wanted: Sequence[Atom]) -> list[Equation]:
    """The equations that lead to the variables from what is known, in program order."""
    found: dict[int, Equation] = {}
    pending: list[Atom] = list(wanted)
    producers = builder.producers_by_now()
    while pending:
        atom = pending.pop()
        if type(atom) is not Var or atom in builder.known or atom in captured:
            continue
        eqn = producers.get(atom)
        if eqn is None or more_than_observing(eqn.effects):  # an effect must not happen twice
            raise UnknownValue(builder, atom)
        if eqn.id not in found:
            found[eqn.id] = eqn
            pending.extend(eqn.invars)
    return [found[i] for i in sorted(found)]


def _read(builder: Builder, captured: dict[Var, Any], atom: Atom) -> Any:
    if isinstance(atom, Literal):
        return atom.val
    known = builder.known.get(atom)
    return value_of(captured[atom] if known is None else known)


# --- what Python asks for, and what it is told


def _asking(
    error: type[JAXTypeError], wish: str, fix: str, convert: Callable[..., Any], has_derivative: bool = False
) -> Any:
    """A method that converts the value; `has_derivative`: its result is a number that would lose a derivative."""

    @api_boundary
    def method(self: Tracer, *args: Any, **options: Any) -> Any:
        try:
            value = value_of(self)
        except UnknownValue as unknown:
            cause = unknown
        else:
            if has_derivative:
                _check_inactive(error, self, wish)
            return convert(value, *args, **options)
        _refuse(error, self, cause, wish, fix)

    return method


def _check_inactive(error: type[JAXTypeError], tracer: Tracer, wish: str) -> None:
    """Raise `error` for a value that depends on what is differentiated: as a number it is a constant."""
    found = differentiated_input(tracer)
    if found is None:
        return
    builder, var = found
    raise error(
        f"{wish} of a traced value of type {tracer.aval.str_short(short_dtypes=False)} is needed at {user_line()}, but "
        f"{builder.derivative_by} differentiates {_context(builder)}{_dependence(builder, var)}, and a number has no "
        "derivative. Keep it an array (use the function of xlamini.numpy, or .astype); for the number without its "
        "derivative, take it of lax.stop_gradient(x)."
    ) from None


def _refuse(error: type[JAXTypeError], tracer: Tracer, unknown: UnknownValue, wish: str, fix: str) -> NoReturn:
    if not tracer.builder.is_tracing():
        raise leaked(tracer) from None
    aval = tracer.aval.str_short(short_dtypes=False)
    raise error(
        f"{wish} of a traced value of type {aval} is needed at {user_line()}, but the value is not known while "
        f"{_context(unknown.builder)} is traced{_dependence(unknown.builder, unknown.var)}. {fix}"
    ) from None


def _context(builder: Builder) -> str:
    return builder.name or "the function"


def _dependence(builder: Builder, var: Var) -> str:
    names = builder.arg_names
    for i, known in enumerate(builder.inputs):
        if known is var and names is not None:
            return f"; it depends on the argument {names[i]!r}"
    return ""


_STATIC = "or mark the argument static (static_argnames of jit or checkpoint)"
_RETURN_IT = f"Return the value from the traced function instead, {_STATIC}."
_OF_THE_LIBRARY = "Use the function of xlamini.numpy in place of the other library's, or call that one outside."
_METHODS: dict[str, Any] = {
    "__bool__": _asking(
        TracerBoolConversionError,
        "The truth value",
        "To choose between values use jnp.where, between computations lax.cond, in place of while lax.while_loop, "
        f"{_STATIC}.",
        bool,
    ),
    "__int__": _asking(
        ConcretizationTypeError, "The int", f"Keep it an array, for example with .astype('int32'), {_STATIC}.", int
    ),
    "__float__": _asking(
        ConcretizationTypeError,
        "The float",
        f"Keep it an array, for example with .astype('float32'), {_STATIC}.",
        float,
        has_derivative=True,
    ),
    "__complex__": _asking(
        ConcretizationTypeError,
        "The complex number",
        f"Keep it an array, for example with .astype('complex64'), {_STATIC}.",
        complex,
        has_derivative=True,
    ),
    "__index__": _asking(
        TracerIntegerConversionError,
        "The integer",
        "Shapes, range() and list indices must be static: use lax.fori_loop in place of range(), lax.dynamic_slice "
        f"for a slice, {_STATIC}.",
        lambda value: np.asarray(value).__index__(),
    ),
    "__array__": _asking(
        TracerArrayConversionError,
        "A NumPy array",
        "Use the function of xlamini.numpy in place of NumPy's, or compute with NumPy outside.",
        lambda value, dtype=None, copy=None: np.asarray(value, dtype),
        has_derivative=True,
    ),
    "__dlpack__": _asking(
        TracerArrayConversionError,
        "The memory",
        _OF_THE_LIBRARY,
        lambda value, **options: _array_of(value).__dlpack__(**options),
        has_derivative=True,
    ),
    "__dlpack_device__": _asking(
        TracerArrayConversionError, "The device", _OF_THE_LIBRARY, lambda value: _array_of(value).__dlpack_device__()
    ),
    "item": _asking(
        ConcretizationTypeError, "The number", _RETURN_IT, lambda value, *index: value.item(*index), has_derivative=True
    ),
    "tolist": _asking(
        ConcretizationTypeError, "A list", _RETURN_IT, lambda value: value.tolist(), has_derivative=True
    ),
    "tobytes": _asking(
        ConcretizationTypeError,
        "The bytes",
        _RETURN_IT,
        lambda value, *order: np.asarray(value).tobytes(*order),
        has_derivative=True,
    ),
    **{
        method: _asking(ConcretizationTypeError, f"The buffer ({method})", _RETURN_IT, operator.methodcaller(method))
        for method in ("delete", "devices", "on_device_size_in_bytes", "unsafe_buffer_pointer")
    },
}


def _array_of(value: Any) -> Any:
    return value if hasattr(value, "__dlpack__") else np.asarray(value)


values_for_a_shape: Final = _asking(
    TracerArrayConversionError,
    "A NumPy array",
    "Use the function of xlamini.numpy in place of NumPy's, or compute with NumPy outside.",
    np.asarray,
)
"""The values of a tracer as an ndarray, from which the library takes a shape, so that no derivative is lost."""


_type_alone = Tracer.__repr__


def _repr(self: Tracer) -> str:
    """`JitTracer(float32[])`, or with its number where there is one: `Tracer(value=Array(2., dtype=float32))`."""
    if not self.builder.is_tracing():
        return _type_alone(self)
    try:
        return f"Tracer(value={value_of(self)!r})"
    except UnknownValue:
        return _type_alone(self)


SHOWN_BY = "shown by"
"""The key, in a builder's memo, of a function that returns the text of a tracer, or None where it has none."""


def _str(self: Tracer) -> str:
    """`str(x)` is `repr(x)`, but of a value in shard_map outside of jit it shows what the devices have."""
    shown_by = self.builder.memo.get(SHOWN_BY)
    text = shown_by(self) if shown_by is not None and self.builder.is_tracing() else None
    return repr(self) if text is None else text


def _format(self: Tracer, spec: str) -> str:
    """`f"{x}"` shows the type; with a format, as in `f"{x:.2f}"`, the number is needed."""
    return _formatted(self, spec) if spec else str(self)


def _itself(self: Tracer, memo: Any = None) -> Tracer:
    return self


def _setitem(self: Tracer, index: Any, value: Any) -> NoReturn:
    raise TypeError(
        f"{self!r} is immutable, so x[index] = value cannot work; write x = x.at[index].set(value), or .add(value) "
        "for x[index] += value"
    )


def _reduce(self: Tracer, protocol: int) -> NoReturn:
    raise TypeError(f"{self!r} cannot be pickled, as it has no value yet; return it, and pickle what the call returns")


_formatted = _asking(
    ConcretizationTypeError,
    "The number, to be formatted,",
    f"Print {{x}} without a format to see its type, return the value from the traced function, {_STATIC}.",
    lambda value, spec: format(value, spec),
)
_METHODS |= {
    "__repr__": _repr,
    "__str__": _str,
    "__format__": _format,
    "__copy__": _itself,
    "__deepcopy__": _itself,
    "__setitem__": _setitem,
    "__reduce_ex__": _reduce,
}

for _name, _method in _METHODS.items():
    setattr(Tracer, _name, _method)
