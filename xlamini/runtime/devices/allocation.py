"""The host allocator: glibc is set to keep the memory that a CPU program frees for the next one.

XLA's CPU client allocates results and temporary buffers with the C library and frees them there. glibc returns
every block above 32 MB to the system at once, so each call of a large program pays for a page fault every 4 kB, two
thirds of the time of `x + y` for ten million numbers. Two malloc settings avoid that. (One heap for all threads would
need less memory, but threads would contend for it: small programs then take 1.7 times as long.)
"""

from __future__ import annotations

import ctypes
import os
import sys

from xlamini.core.flags import device_flags

# Numbers from glibc's malloc.h, by the environment variable that sets the same option. A heap of one of glibc's threads
# has at most 64 MB, so a larger block comes from the system in any case.
_SETTINGS = {
    "MALLOC_MMAP_THRESHOLD_": (-3, 60_000_000),
    "MALLOC_TRIM_THRESHOLD_": (-1, 512_000_000),
}


def keep_freed_memory() -> bool:
    """Make glibc keep freed memory, in blocks below 60 MB and up to 512 MB of each heap; returns whether it does.

    Nothing is changed on other systems, with flag `keep_freed_memory` off, or where the user has set one of glibc's
    environment variables.
    """
    set_by_user = any(map(os.environ.get, _SETTINGS))
    if not device_flags.keep_freed_memory.value or sys.platform != "linux" or set_by_user:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(number, value) for number, value in _SETTINGS.values())
