"""What a type checker sees of jaxlib's profiler: the classes that public types name (core/jaxlib_types.py says why)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlamini.core.jaxlib_types import Compiled

    class ProfileOptions(Compiled): ...

    class ProfileData(Compiled):
        @staticmethod
        def from_serialized_xspace(serialized: bytes) -> ProfileData: ...
        @staticmethod
        def from_file(path: str) -> ProfileData: ...
        @staticmethod
        def from_text_proto(text: str) -> ProfileData: ...

    class ProfileEvent(Compiled): ...

    class ProfileLine(Compiled): ...

    class ProfilePlane(Compiled): ...

    class ProfilerServer(Compiled): ...

    class TraceMe(Compiled):
        def __enter__(self) -> TraceMe: ...
        def __exit__(self, *error: Any) -> None: ...

    register_subprocess: Callable[[int, int], Callable[[], None]]

else:
    from jaxlib._profile_data import (
        ProfileData as ProfileData,
        ProfileEvent as ProfileEvent,
        ProfileLine as ProfileLine,
        ProfilePlane as ProfilePlane,
    )
    from jaxlib._profiler import (
        ProfileOptions as ProfileOptions,
        ProfilerServer as ProfilerServer,
        TraceMe as TraceMe,
        register_subprocess as register_subprocess,
    )
