"""How this process's memory is handed out: what a CPU program frees is kept for the next one.

XLA's CPU client takes the memory of results and temporary values from the C library and gives it back. glibc returns
every block above 32 MB to the system at once, so each call of a large program pays for a page fault every 4 kB, two
thirds of the time of `x + y` for ten million numbers. Told to, it keeps them. (One heap for all threads would need less
memory, but threads would wait for each other: small programs then take 1.7 times as long.)
"""

from __future__ import annotations

import ctypes
import os
import sys

from xlamini.core import config

# Numbers of glibc's malloc.h; the variables with which a user sets the same for the whole process. A heap of one of its
# threads has 64 MB at most, so what is larger comes from the system in any case.
_SETTINGS = {
    "MALLOC_MMAP_THRESHOLD_": (-3, 60_000_000),
    "MALLOC_TRIM_THRESHOLD_": (-1, 512_000_000),
}


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed memory, in blocks below 60 MB and up to 512 MB of each heap; whether it was told.

    Nothing is changed on other systems, with flag `keep_freed_memory` off, or where an environment variable of glibc's
    says how the user wants it.
    """
    said_by_user = any(map(os.environ.get, _SETTINGS))
    if not config.keep_freed_memory.value or sys.platform != "linux" or said_by_user:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(number, value) for number, value in _SETTINGS.values())
