"""Causes that what a script's host did shows: waits, compilations, transfers, operations one by one, its own Python.

Each takes what was recorded and yields findings; their shares are of the wall time.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xlamini.analysis.lints.loops import python_loop
from xlamini.analysis.lints.program import LintedProgram, bodies_of
from xlamini.inspection.timing.causes.finding import LEAST_SHARE, TimeFinding
from xlamini.inspection.timing.script.record import ScriptRecord, known_as
from xlamini.inspection.timing.script.samples import LIBRARY, by_line
from xlamini.inspection.timing.script.waits import LineWait
from xlamini.inspection.timing.trace.host import place
from xlamini.inspection.timing.trace.trace import EAGER
from xlamini.inspection.units import shown
from xlamini.staging.compile.ledger import Compilation, Function

_OFTEN = 10
"""What happens so many times at one line is a loop's."""
_SHAPES = 20
"""So many shapes at one line are an array that grows; fewer may be the layers of a model, made once."""
_MANY = 1000
"""So many operations by themselves are worth a word."""
_TENTH = 0.1
"""From this share on, moving batches is worth a word: each has to be moved once."""
_HALF = 0.5
"""From this share on, a script does little but compile for the first time, which each script has to do."""
_SECOND = 1.0
"""Nobody waits for less."""
_LARGE = 2**20
"""Bytes of an array that takes longer to move than to call for."""

_LATER = "keep the arrays, and look at them after the loop or every 50 steps, so that the next step begins meanwhile"


def waits(found: ScriptRecord) -> Iterator[TimeFinding]:
    """A line of a loop holds the host up until the device is done."""
    for wait in found.waits.lines():
        if _is_often(found, wait) and not wait.prints:
            text = f"{wait.line} waits for the device {wait.count} times; {_LATER}"
            yield TimeFinding(wait.seconds / found.wall, text, place(wait.line))


def prints(found: ScriptRecord) -> Iterator[TimeFinding]:
    """A line of a loop writes arrays as text."""
    for wait in found.waits.lines():
        if wait.count >= _OFTEN and wait.prints:
            text = (
                f"{wait.line} writes arrays as text {wait.count} times, for which it waits for them and reads all of "
                "their elements; print a number such as x.mean(), and every 50 steps"
            )
            yield TimeFinding(wait.seconds / found.wall, text, place(wait.line))


def small_waits(found: ScriptRecord) -> Iterator[TimeFinding]:
    """Many lines wait, each for too little to be told by itself."""
    small = [w for w in found.waits.lines() if _is_often(found, w) and w.seconds < LEAST_SHARE * found.wall]
    if len(small) > 1:
        lines = ", ".join(place(wait.line) for wait in small[:3])
        text = f"{len(small)} lines wait for the device, {sum(w.count for w in small)} times ({lines}); {_LATER}"
        yield TimeFinding(sum(w.seconds for w in small) / found.wall, text, place(small[0].line))


def _is_often(found: ScriptRecord, wait: LineWait) -> bool:
    """Whether a line waits in each step; after so many calls the device has had work all along."""
    return found.rounds(wait) >= max(_OFTEN, len(found.calls) / _OFTEN)


def compiled_again(found: ScriptRecord) -> Iterator[TimeFinding]:
    """A function is compiled for one signature after another."""
    for function, entries in found.compiled.by_function().items():
        again = [e for e in entries if e.compiled and not e.is_own and e.cause.kind != "first call"]
        if len(again) > 1:
            seconds = _own_seconds(found, again)
            name, line = known_as(function, again[-1])
            yield TimeFinding(seconds / found.wall, f"{name} {_again(again)}", line)


def _own_seconds(found: ScriptRecord, entries: Sequence[Compilation]) -> float:
    """The seconds of compilations without those in which what a function captures was moved, a cause of its own."""
    by_function = found.compiled.by_function()
    return sum(e.total - _moving(found, e.function) / len(by_function[e.function]) for e in entries)


def _moving(found: ScriptRecord, function: Function) -> float:
    """The seconds in which what a function captures was moved as it was traced."""
    ending = (f".{function.name})", f"({function.name})")
    lines = (e for e in found.transfers.lines() if e.is_captured and e.line.endswith(ending))
    return sum(e.seconds for e in lines if e.line.startswith(f"{function.file}:"))


def _again(entries: list[Compilation]) -> str:
    last = entries[-1]
    edit = "give jit buckets, or pad it to a few shapes" if last.cause.kind == "shape" else last.cause.edit
    return f"was compiled {len(entries) + 1} times: {last.cause.text}; to avoid it, {edit}"


def compiled_by_line(found: ScriptRecord) -> Iterator[TimeFinding]:
    """An operation outside of jit gets arrays of one shape after another, each of which is a program of its own."""
    lines: dict[tuple[str, str], list[Compilation]] = {}
    for entry in found.compiled:
        if entry.compiled and entry.is_own:
            lines.setdefault((entry.where, entry.name), []).append(entry)
    for (where, name), entries in lines.items():
        if len(entries) >= _SHAPES:
            text = (
                f"{where} compiles {name} {len(entries)} times, as each shape is a program of its own; pad the arrays "
                "to a few shapes, or compute with NumPy while they grow"
            )
            yield TimeFinding(sum(e.total for e in entries) / found.wall, text, place(where))


def compiled_first(found: ScriptRecord) -> Iterator[TimeFinding]:
    """Compiling for the first time takes most of the time, also of the CPU's: other programs may hold it up alone."""
    first = [e for e in found.compiled if e.compiled and not e.is_own and e.cause.kind == "first call"]
    seconds = _own_seconds(found, first)
    is_most = seconds > _HALF * found.wall and found.compiling > _HALF * found.cpu
    if is_most and min(seconds, found.compiling) > _SECOND:
        longest = max(first, key=lambda e: e.total)
        line, fix = _fix_of(found, longest)
        text = f"{longest.function} took {shown(longest.total, 'seconds')} to compile for its first call; {fix}"
        yield TimeFinding(seconds / found.wall, text, line)


def _fix_of(found: ScriptRecord, entry: Compilation) -> tuple[str, str]:
    """The line and the edit: that of a Python loop which was traced step by step, else the disk cache."""
    for compiled, jaxpr in found.programs:
        if compiled is entry:
            program = LintedProgram(len, jaxpr, (), bodies_of(jaxpr), (), ())
            for each in python_loop(program):
                where = f"{each.place.file}:{each.place.line}"
                return where, f"at {where} {each.message}: write it as jax.lax.scan, or jax.lax.fori_loop"
    keep = 'keep it on disk for the next run: jax.config.update("jax_compilation_cache_dir", folder)'
    return f"{entry.function.file}:{entry.function.line}", keep


def eager(found: ScriptRecord) -> Iterator[TimeFinding]:
    """Small operations run one by one, as their line is in no jitted function."""
    row = next((row for row in found.lines.rows if row.name == EAGER), None)
    lines = by_line(s for s in found.samples if s.does == LIBRARY and found.is_watched(s))
    if row is not None and row.calls >= _MANY and lines:
        count = f"{row.calls}" if found.is_whole else f"more than {row.calls}"
        text = (
            f"{count} operations ran one by one outside of jit ({row.detail}), most of them at {lines[0].line}; put "
            "the lines that repeat them into a jitted function"
        )
        share = sum(line.seconds for line in lines) / found.watched
        compiled = sum(e.total for e in found.compiled if e.is_own) / found.wall
        yield TimeFinding(share + compiled, text, place(lines[0].line))


def converted(found: ScriptRecord) -> Iterator[TimeFinding]:
    """A NumPy array of a dtype that the device does not get is converted in each step."""
    for each in found.transfers.lines():
        if each.count >= _OFTEN and each.is_converted and not each.is_captured:
            dtype = each.given.partition("[")[0]
            text = (
                f"{each.line} gives {each.given}, which becomes {each.made}, {each.count} times; make it of that dtype "
                f"where it comes from: .astype('{each.made}') once, in place of {dtype} in each step"
            )
            yield TimeFinding(each.seconds / found.wall, text, place(each.line))


def moved(found: ScriptRecord) -> Iterator[TimeFinding]:
    """A loop moves so much to the device that it takes a share of the time."""
    for each in found.transfers.lines():
        is_much = each.seconds >= _TENTH * found.wall
        if is_much and each.count >= _OFTEN and not each.is_converted and not each.is_captured:
            text = (
                f"{each.line} moves {each.given} to the device {each.count} times, {shown(each.bytes, 'bytes')}; put "
                "what stays the same there once, by jax.device_put, and move the next batch while the device works"
            )
            yield TimeFinding(each.seconds / found.wall, text, place(each.line))


def captured(found: ScriptRecord) -> Iterator[TimeFinding]:
    """A jitted function captures a large array, which becomes a part of its program."""
    for each in found.transfers.lines():
        if each.is_captured and each.bytes > _LARGE * each.count:
            text = (
                f"at {each.line} a jitted function captures {each.given}, {shown(each.bytes / each.count, 'bytes')}: "
                "each time that it is compiled, it copies the array to the device, and keeps it; pass it as an "
                "argument, put on the device once by jnp.asarray"
            )
            yield TimeFinding(each.seconds / found.wall, text, place(each.line))


def between_steps(found: ScriptRecord) -> Iterator[TimeFinding]:
    """The user's own Python, such as a loader's, takes longer between steps than the device for one, which waits."""
    calls = found.calls
    if len(calls) <= _OFTEN:
        return
    loop = [s for s in found.python if calls[0][1] < found.traced(s) < calls[-1][0]]
    idle = [s for s in loop if found.traced(s) not in found.device]
    gaps = {found.device.before(found.traced(s)) for s in idle}
    if len(gaps) >= _OFTEN and sum(s.seconds for s in loop) > found.device.seconds:
        lines, seconds = by_line(idle), sum(s.seconds for s in idle)
        text = (
            f"the device has no work for {shown(seconds, 'seconds')}, as the next step is called late: "
            f"{lines[0].line} takes {lines[0].seconds / seconds:.0%} of that; let a thread or another process prepare "
            "batches and write files while the device works, or do less between steps"
        )
        yield TimeFinding(seconds / found.watched, text, place(lines[0].line))


HOST_CAUSES: list[Callable[[ScriptRecord], Iterator[TimeFinding]]] = [
    waits, prints, small_waits, compiled_again, compiled_by_line, compiled_first, eager, converted, moved, captured,
    between_steps,
]  # fmt: skip
"""What is found beside what traces show."""
