"""Recordings of GPUs and TPUs, written by hand in the form of XLA's profiler: no recorded file stands behind them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xlamini import profiler

Event = tuple[str, int, int, Mapping[str, Any]]
"""The name, the start and the duration in nanoseconds, and the stats."""
Planes = Mapping[str, Mapping[str, Sequence[Event]]]

FIRST, SECOND = {"run_id": 11}, {"run_id": 12}


def of_gpu(op: str, start: int, duration: int, **stats: Any) -> Event:
    """A kernel of jit_step in a stream."""
    details = "regs:32 static_shared:0 dynamic_shared:0 grid:8,1,1 block:128,1,1 occ_pct:100"
    about = {"hlo_op": op, "hlo_module": "jit_step", "program_id": 7, "correlation_id": start}
    return f"{op}_kernel", start, duration, {**about, "kernel_details": details, **stats}


def copy(direction: str, start: int, duration: int, size: int) -> Event:
    details = f"kind_src:pageable kind_dst:device size:{size} dest:0 async:1"
    return f"Memcpy{direction}", start, duration, {"correlation_id": start, "memcpy_details": details}


GPU: Planes = {
    "/device:GPU:0": {
        "Stream #13(Compute)": [
            of_gpu("loop_fusion", 1000, 4000),
            of_gpu("while.1::dot.2", 6000, 1000),
            of_gpu("while.1::dot.2", 8000, 1000),
            ("cub_sort", 9500, 500, {"kernel_details": "regs:32"}),
            of_gpu("loop_fusion", 11000, 4000),
            of_gpu("while.1::dot.2", 16000, 1000),
            of_gpu("while.1::dot.2", 18000, 1000),
        ],
        "Stream #14(MemcpyH2D)": [copy("H2D", 100, 600, 4096), copy("H2D", 10100, 600, 4096)],
        "Stream #15(MemcpyD2H)": [copy("D2H", 20000, 300, 4)],
        "XLA Modules": [("jit_step", 1000, 8000, {})],  # such lines are derived from the streams
        "XLA Ops": [of_gpu("loop_fusion", 1000, 4000)],
        "Steps": [("1", 1000, 8000, {})],
    },
    "/host:CPU": {"python": [of_gpu("loop_fusion", 500, 100)]},
}

LOOP = "%while.4 = (s32[], f32[8]{0:T(256)}) while(%tuple.2), condition=%cond.1, body=%body.1"
FUSION = '%fusion.3 = f32[8]{0:T(256)} fusion(%p.1), kind=kLoop, calls=%fused.3, metadata={op_name="jit(step)/tanh"}'
TPU: Planes = {
    "/device:TPU:0": {
        "Steps": [("0", 1000, 9000, {})],
        "XLA Modules": [("jit_step(1234567)", 1000, 9000, FIRST), ("jit_step(1234567)", 21000, 9000, SECOND)],
        "XLA Ops": [
            ("%copy-start.1 = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(%p.0)", 1000, 100, {}),
            (LOOP, 2000, 6000, {}),
            (FUSION, 2500, 2000, {"tf_op": "jit(step)/tanh"}),
            (FUSION, 5000, 2000, {"tf_op": "jit(step)/tanh"}),
            ("dot.9", 8000, 1000, {}),
            (FUSION, 22000, 2000, {}),
            (FUSION, 40000, 1000, {}),  # its call is not in the trace
        ],
        "Async XLA Ops": [("%copy-start.1 = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(%p.0)", 1000, 5000, {})],
    },
    "/device:TPU:0 SparseCore 0": {"XLA Ops": [(FUSION, 2500, 2000, {})]},
}


def recording(planes: Planes) -> profiler.ProfileData:
    """The `ProfileData` of these planes."""
    return profiler.ProfileData.from_text_proto("".join(_plane(name, lines) for name, lines in planes.items()))


def xspace(planes: Planes, begin: int = 0) -> bytes:
    """The bytes of a file with these planes, whose recording began at a time in nanoseconds."""
    text = "".join(_plane(name, lines) for name, lines in planes.items())
    text += f"""planes {{ name: "Task Environment" stats {{ metadata_id: 1 uint64_value: {begin} }}
        stat_metadata {{ key: 1 value {{ id: 1 name: "profile_start_time" }} }} }}"""
    return profiler.ProfileData.text_proto_to_serialized_xspace(text)


def _plane(name: str, lines: Mapping[str, Sequence[Event]]) -> str:
    every = [event for events in lines.values() for event in events]
    names = {text: i for i, text in enumerate(dict.fromkeys(event[0] for event in every), 1)}
    stats = {stat: i for i, stat in enumerate(dict.fromkeys(stat for event in every for stat in event[3]), 1)}
    body = [
        f"lines {{ name: {_quoted(line)} {' '.join(_event(event, names, stats) for event in events)} }}"
        for line, events in lines.items()
    ]
    for kind, numbers in (("event_metadata", names), ("stat_metadata", stats)):
        body += [f"{kind} {{ key: {i} value {{ id: {i} name: {_quoted(text)} }} }}" for text, i in numbers.items()]
    return f"planes {{ name: {_quoted(name)} {' '.join(body)} }}\n"


def _event(event: Event, names: Mapping[str, int], stats: Mapping[str, int]) -> str:
    name, start, duration, values = event
    found = [f"stats {{ metadata_id: {stats[stat]} {_value(value)} }}" for stat, value in values.items()]
    times = f"offset_ps: {start * 1000} duration_ps: {duration * 1000}"
    return f"events {{ metadata_id: {names[name]} {times} {' '.join(found)} }}"


def _value(value: Any) -> str:
    return f"int64_value: {value}" if isinstance(value, int) else f"str_value: {_quoted(value)}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
