"""The ways to turn it on, with and without a JAX that is installed or imported."""
from __future__ import annotations

import re
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.support.children import fails, passes, python
from tests.support.paths import ROOT
from xlamini import __version__
from xlamini.commands import jax_wheel
from xlamini.core.version import JAX_VERSION

SCRIPT = """
import sys
import jax.numpy as jnp
import xlamini
assert jnp is xlamini.numpy and __name__ == "__main__"
print(sys.argv[1:])
sys.exit(3)
"""


@pytest.fixture
def with_jax(tmp_path: Path) -> Path:
    """A folder in which a JAX is installed."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax/__init__.py").write_text("import jax.inside\n")
    (tmp_path / "jax/inside.py").write_text("import jax\n")
    (tmp_path / "user.py").write_text("import jax\n")
    return tmp_path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the contents of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(jax_wheel.write_wheel(folder)) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.full
def test_an_installed_jax_is_not_used_and_a_warning_says_so(with_jax: Path) -> None:
    said = passes("import xlamini.as_jax, jax; assert jax.__xlamini__", with_jax)
    assert said.count("RuntimeWarning") == 1
    assert f"jax is installed too ({with_jax}/jax/__init__.py); in this process `import jax` gives xlamini" in said


@pytest.mark.full
def test_indices_out_of_bounds_and_narrowing_are_as_in_jax() -> None:
    program = """
        import warnings
        import numpy as np
        import xlamini.as_jax
        import jax.numpy as jnp
        warnings.simplefilter("error")
        assert jnp.asarray(np.arange(3.0))[5] == 2
        import jax
        jax.config.update("warn_of_narrowing", True)
        try: jnp.asarray(np.arange(3.0))
        except UserWarning: pass
        else: raise AssertionError
    """
    passes(program)


@pytest.mark.full
def test_an_imported_jax_is_an_error_that_names_who_did_it(with_jax: Path) -> None:
    late = fails("import user, xlamini.as_jax", with_jax)
    assert "jax has been imported in this process by module 'user', and" in late
    assert "or write `import xlamini.as_jax` above it" in late


@pytest.mark.full
def test_after_an_import_of_jax_that_was_refused_it_can_still_be_turned_on(with_jax: Path) -> None:
    program = """
        import xlamini
        try: import jax
        except ImportError as error: assert "`import xlamini.as_jax` above them" in str(error)
        else: raise AssertionError
        import xlamini.as_jax, jax
        assert jax.__xlamini__
    """
    passes(program, with_jax)


@pytest.mark.full
def test_a_script_runs_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = python("-m", "xlamini", "run", str(tmp_path / "script.py"), "-n", "2")
    assert (ran.returncode, ran.stdout) == (3, "['-n', '2']\n"), ran.stderr


@pytest.mark.full
def test_a_script_that_is_not_there_is_named() -> None:
    ran = python("-m", "xlamini", "run", "missing.py")
    assert ran.returncode == 2 and "error: there is no file 'missing.py'; a module is run by -m" in ran.stderr


@pytest.mark.full
def test_a_module_runs_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SCRIPT)
    ran = python("-m", "xlamini", "run", "-m", "program", "a", path=tmp_path)
    assert (ran.returncode, ran.stdout) == (3, "['a']\n"), ran.stderr


FAILS = """
def inner():
    return {}["absent"]

def outer():
    try:
        inner()
    except KeyError as error:
        raise ValueError("no number") from error

outer()
"""
ENDINGS = {
    "chained": FAILS,
    "grouped": FAILS.replace('ValueError("no number")', 'ExceptionGroup("two", [ValueError("no number"), OSError()])'),
    "interrupted": "raise KeyboardInterrupt\n",
    "a message": "import sys\nsys.exit('no more')\n",
    "a console of few signs": "import sys\nsys.exit(sys.stdout.errors)\n",
    "no syntax": "print('a'\n",
    "a hook": "import sys\nsys.excepthook = lambda kind, error, trace: print(trace.tb_lineno, trace.tb_next)\n1 / 0\n",
}


@pytest.mark.full
@pytest.mark.parametrize("command", ["run", "profile"])
@pytest.mark.parametrize("program", ENDINGS.values(), ids=ENDINGS)
def test_an_error_is_shown_as_python_shows_it(tmp_path: Path, program: str, command: str) -> None:
    """No frame of the command and of runpy stands above the script's, and the exit status is Python's."""
    (tmp_path / "script.py").write_text(program)
    plain = python(str(tmp_path / "script.py"))
    ran = python("-m", "xlamini", command, str(tmp_path / "script.py"))
    assert (ran.returncode, ran.stdout) == (plain.returncode, plain.stdout) and plain.returncode != 0
    assert ran.stderr == plain.stderr or (command == "profile" and ran.stderr.startswith(plain.stderr))


@pytest.mark.full
def test_an_error_of_a_module_begins_in_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("1 / 0\n")
    ran = python("-m", "xlamini", "run", "-m", "program", path=tmp_path)
    first = f'  File "{tmp_path}/program.py", line 1, in <module>'
    assert ran.stderr.startswith(f"Traceback (most recent call last):\n{first}"), ran.stderr


@pytest.mark.full
@pytest.mark.parametrize("module", ["nosuchmodule", "json.nosuch", "os.nosuch", "package"])
@pytest.mark.parametrize("command", ["run", "profile"])
def test_a_module_that_is_not_there_is_said_as_python_says_it(tmp_path: Path, command: str, module: str) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").touch()
    plain = python("-m", module, path=tmp_path)
    ran = python("-m", "xlamini", command, "-m", module, path=tmp_path)
    assert (ran.returncode, plain.returncode) == (1, 1)
    assert ran.stderr.startswith(plain.stderr)


SPAWNS = """
import multiprocessing
from importlib.metadata import version

def work():
    import jax
    assert jax.__xlamini__ and jax.__version__ == version("jax"), jax
    print(jax.numpy.arange(3))

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
    assert child.exitcode == 0
"""


@pytest.mark.full
def test_processes_of_a_script_that_runs_are_answered_too(with_jax: Path) -> None:
    script = with_jax / "scripts/spawns.py"
    script.parent.mkdir()
    script.write_text(SPAWNS)
    ran = python("-m", "xlamini", "run", str(script), path=with_jax)
    assert (ran.returncode, ran.stdout) == (0, "[0 1 2]\n"), ran.stderr


@pytest.mark.full
def test_pytest_takes_it_as_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import jax\ndef test_it():\n    assert jax.__xlamini__\n")
    settings = tmp_path / "pytest.ini"
    settings.write_text("[pytest]\n")
    ran = python("-m", "pytest", "-q", "-p", "xlamini.as_jax", "-c", str(settings), str(tmp_path))
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.full
def test_the_wheel_is_a_jax_that_is_xlamini(tmp_path: Path) -> None:
    path = jax_wheel.write_wheel(tmp_path / "wheels")
    assert path.name == f"jax-{JAX_VERSION}-py3-none-any.whl"
    assert path.read_bytes() == jax_wheel.write_wheel(tmp_path).read_bytes()
    with zipfile.ZipFile(path) as wheel:
        info = f"jax-{JAX_VERSION}.dist-info"
        metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
        listed = [line.split(",")[0] for line in wheel.read(f"{info}/RECORD").decode().splitlines()]
        assert sorted(listed) == sorted(wheel.namelist())
        wheel.extractall(tmp_path / "site")
    assert (metadata["Name"], metadata["Version"]) == ("jax", JAX_VERSION)
    assert metadata.get_all("Requires-Dist") == [f"xlamini=={__version__}", "opt_einsum", "scipy>=1.13"]
    said = passes(
        """
        import xlamini
        import jax, jax.numpy as jnp
        from importlib.metadata import version

        assert jnp is xlamini.numpy and jax.jit is xlamini.jit
        assert version("jax") == jax.__version__ and jax.__version_info__ == tuple(map(int, version("jax").split(".")))
        """,
        tmp_path / "site",
    )
    assert "Warning" not in said


LATER = "import threading; t = threading.Thread(target=lambda: __import__('jax.core')); t.start(); import jax; t.join()"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "program", ["import jax", "from jax import numpy", "import jax.numpy", "import jax._src.core", LATER]
)
def test_the_wheel_works_where_nothing_else_has_been_imported(wheel: Path, program: str) -> None:
    """Whoever imports `jax` over the wheel, a library or a spawned process, has not imported xlamini."""
    assert passes(program, wheel) == ""


@pytest.mark.full
def test_no_wheel_is_made_where_jax_is_installed(with_jax: Path) -> None:
    ran = python("-m", "xlamini", "jax-wheel", str(with_jax / "wheels"), path=with_jax)
    assert ran.returncode == 1 and not (with_jax / "wheels").exists()
    assert "use a fresh environment, or run first: pip uninstall jax" in ran.stderr


@pytest.mark.full
def test_indices_out_of_bounds_mean_what_they_mean_in_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
    import xlamini.as_jax, jax, jax.numpy as jnp
    assert (jnp.arange(3)[7], jnp.zeros(2).at[2].set(1).sum()) == (2, 0)
    """
    passes(program)
    monkeypatch.setenv("XLAMINI_CHECK_STATIC_INDICES", "1")
    assert "index 7 is out of bounds for axis 0 with size 3" in fails(program)


def test_no_test_is_as_jax_itself() -> None:
    """What `import jax` answers would be handed out to all tests after it in this process."""
    importing = re.compile(r"^\s*(from|import) xlamini\.as_jax", re.MULTILINE)
    outside = re.compile(r'"""(?s:.*?)"""')
    for file in (ROOT / "tests").rglob("test_*.py"):
        assert not importing.search(outside.sub("", file.read_text())), file
