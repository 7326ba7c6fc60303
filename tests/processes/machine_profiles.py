"""A core program on a machine that lacks what only some systems have: `python machine_profiles.py PROFILE FOLDER`.

A profile removes names and files before xlamini is imported. What Python, NumPy and jaxlib have built on them stays, as
their wheels for such a machine do without.
"""
from __future__ import annotations

import ctypes
import fnmatch
import glob  # noqa: F401 the standard library is imported while this machine is whole
import importlib.resources  # noqa: F401
import os
import pathlib
import platform
import shutil
import signal
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
import types
from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401
import numpy as np
from jaxlib import _jax, _pretty_printer  # noqa: F401

USERS = ("geteuid", "getuid", "getegid", "getgid")
FORK = ("fork", "register_at_fork", "forkpty")
LINUX = ("sched_getaffinity", "sched_setaffinity", "O_DIRECT", "O_TMPFILE", "memfd_create", "prlimit")
POSIX = ("sysconf", "O_NOFOLLOW", "O_NONBLOCK", "RTLD_GLOBAL", "RTLD_LOCAL", "getloadavg", "killpg", "uname", "chown")
LINUX_FILES = ("/proc*", "/sys/*", "/dev/nvidia*", "/dev/accel*", "/dev/vfio*", "/dev/kfd", "/dev/dxg")
MODULES = ("fcntl", "resource", "pwd", "grp", "termios")
KEPT_SIGNALS = "SIG_DFL SIG_IGN SIGABRT SIGFPE SIGILL SIGINT SIGSEGV SIGTERM".split()
RESERVED = '<>:"|?*'


def without(*names: str) -> None:
    shutil._use_fd_functions = False  # type: ignore[attr-defined] # chosen at import, where the names were there
    for name in names:
        if hasattr(os, name):
            delattr(os, name)


def without_files(*patterns: str) -> None:
    """Files of these names do not exist."""
    whole = os.stat

    def stat(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        refuse(path)
        return whole(path, *args, **kwargs)

    def refuse(path: Any) -> None:
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        if any(fnmatch.fnmatch(str(text), pattern) for pattern in patterns):
            raise FileNotFoundError(2, "no such file on this machine", text)

    os.stat = stat
    sys.addaudithook(lambda event, args: refuse(args[0]) if event == "open" else None)


def without_modules() -> None:
    sys.modules.update(dict.fromkeys(MODULES))


def without_symbolic_links() -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("a symbolic link needs a privilege")

    os.symlink = os.link = refuse


def without_signals() -> None:
    for name in [n for n in dir(signal) if n.startswith("SIG") and n not in KEPT_SIGNALS]:
        delattr(signal, name)
    for name in ("alarm", "setitimer", "pthread_sigmask", "pthread_kill", "sigwait"):
        delattr(signal, name)


def without_c_library() -> None:
    """Windows does not open the program itself as a library."""
    whole = ctypes.CDLL

    def load(name: Any, *args: Any, **kwargs: Any) -> Any:
        if name is None:
            raise TypeError("LoadLibrary() argument 1 must be str, not None")
        return whole(name, *args, **kwargs)

    ctypes.CDLL = load  # type: ignore[assignment,misc]


def with_reserved_signs() -> None:
    """No file name has a sign that Windows reserves."""

    def check(event: str, args: tuple[Any, ...]) -> None:
        if event in ("open", "os.mkdir", "os.rename") and isinstance(args[0], str | os.PathLike):
            name = os.path.basename(os.fspath(args[0]))
            if isinstance(name, str) and not name.startswith("<") and set(name) & set(RESERVED):
                raise OSError(22, "Invalid argument", name)

    sys.addaudithook(check)


def called(system: str, machine: str, sys_platform: str, name: str = "posix") -> None:
    platform.system, platform.machine = lambda: system, lambda: machine  # type: ignore[assignment]
    sys.platform = sys_platform
    if name != os.name:
        paths_of_this_machine()
        os.name = name


def paths_of_this_machine() -> None:
    """Paths stay as this machine has them: a path of another system cannot be opened."""
    here = types.ModuleType("os")
    here.__dict__.update(os.__dict__)
    for module in [m for n, m in sys.modules.items() if n == "pathlib" or n.startswith("pathlib.")]:
        if hasattr(module, "os"):
            module.os = here  # type: ignore[attr-defined]
    assert pathlib.Path("a").name == "a"


def macos() -> None:
    without(*LINUX)
    without_files(*LINUX_FILES)
    called("Darwin", "arm64", "darwin")


def windows() -> None:
    without(*USERS, *FORK, *LINUX, *POSIX)
    without_files(*LINUX_FILES)
    without_modules(), without_symbolic_links(), without_signals(), without_c_library(), with_reserved_signs()
    called("Windows", "AMD64", "win32", "nt")


PROFILES: dict[str, Callable[[], None]] = {
    "whole": lambda: None,
    "users": lambda: without(*USERS),
    "fork": lambda: without(*FORK),
    "affinity": lambda: without("sched_getaffinity"),
    "sysconf": lambda: without(*POSIX),
    "proc": lambda: without_files("/proc*", "/sys/*"),
    "modules": without_modules,
    "symbolic links": without_symbolic_links,
    "signals": lambda: (without_signals(), called("Windows", "AMD64", "win32"))[0],
    "macos": macos,
    "windows": windows,
    "aarch64": lambda: called("Linux", "aarch64", "linux"),
}


def core(folder: pathlib.Path) -> None:
    """Each part prints what it found, rounded; the parts are those of a first hour."""
    import xlamini
    from xlamini import lax, numpy as jnp

    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    w, x = jnp.arange(6.0).reshape(3, 2) / 6, jnp.arange(12.0).reshape(4, 3) / 12
    show("jit", xlamini.jit(loss)(w, x))
    show("grad", xlamini.grad(loss)(w, x))
    show("vmap", xlamini.vmap(loss, (None, 0))(w, x))
    show("scan", lax.scan(lambda c, y: (c * 0.5 + y, c), 0.0, jnp.arange(4.0)))
    show("random", xlamini.random.normal(xlamini.random.key(7), (3,)))
    show("jaxpr", str(xlamini.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0)))
    show("callback", xlamini.pure_callback(np.cos, xlamini.ShapeDtypeStruct((), "float32"), jnp.float32(1.0)))
    xlamini.jit(lambda x: xlamini.debug.print("printed {}", x))(jnp.int32(5))
    xlamini.effects_barrier()
    try:
        x @ x
    except TypeError as error:
        show("error", str(error).splitlines()[0])
    files(folder)
    reports(folder)


def files(folder: pathlib.Path) -> None:
    """The cache of compiled programs, and a function exported to a file and back."""
    import xlamini
    from xlamini import cache, export, numpy as jnp

    xlamini.config.update("compilation_cache_dir", str(folder / "programs"))
    x = jnp.float32(0.5)
    for _ in range(2):
        show("cache", xlamini.jit(lambda x: jnp.cos(x) * 3)(x))
        xlamini.clear_caches()
    show("cached", (cache.stats().stored > 0, cache.stats().hits > 0))
    path = folder / "f.bin"
    path.write_bytes(export.export(xlamini.jit(jnp.exp))(xlamini.ShapeDtypeStruct((2,), "float32")).serialize())
    show("export", export.deserialize(bytearray(path.read_bytes())).call(jnp.float32([0, 1])))


def reports(folder: pathlib.Path) -> None:
    """What the commands print: the doctor, and the levels of a program as texts and as a page."""
    import xlamini
    from xlamini import doctor, numpy as jnp
    from xlamini.commands import launch
    from xlamini.inspection.text import SCREENS
    from xlamini.sharding import Mesh, NamedSharding, PartitionSpec

    show("doctor", doctor.main(["--platform", "cpu"]))
    report = xlamini.inspect(lambda x: jnp.tanh(x @ x.T).sum())(jnp.ones((4, 3)))
    for screen in SCREENS:
        if screen != "diff":
            print(report.text(screen))  # noqa: T201
    report.save(folder / "page.html")
    show("page", "dot_general" in (folder / "page.html").read_text("utf-8"))
    print(repr(jnp.ones(3)), xlamini.devices(), NamedSharding(Mesh(xlamini.devices(), "x"), PartitionSpec("x")))  # noqa: T201
    xlamini.debug.print("a sign that cp1252 lacks: \u2603")
    xlamini.effects_barrier()
    script = folder / "script.py"
    script.write_text("print('launched')\n", encoding="utf-8")
    show("launch", launch.main(["-n", "1", str(script)]))


def show(name: str, value: Any) -> None:
    import xlamini

    leaves = [np.asarray(v) for v in xlamini.tree.leaves(value)]
    rounded = [v.tolist() if v.dtype.kind not in "fc" else np.round(v.astype(float), 4).tolist() for v in leaves]
    print(f"{name}: {rounded}".encode("ascii", "backslashreplace").decode(), flush=True)  # noqa: T201


if __name__ == "__main__":
    PROFILES[sys.argv[1]]()
    core(pathlib.Path(sys.argv[2]))
