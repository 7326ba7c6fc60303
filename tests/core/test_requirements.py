"""A process that is not fit for xlamini: another jaxlib, one that pip has replaced, or JAX; errors say what to do."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.children import fails, passes
from xlamini.core.requirements import check_jaxlib

RESTART = "restart Python (in a notebook, its runtime)"


@pytest.mark.parametrize("version", ["0.10.2", "0.11.0", "0.12.0.1"])
def test_supported_jaxlib(version: str) -> None:
    check_jaxlib(version, version)


@pytest.mark.parametrize("version", ["0.10.1", "0.4.30", "0.13.0", "1.0"])
def test_unsupported_jaxlib(version: str) -> None:
    with pytest.raises(ImportError) as error:
        check_jaxlib(version, version)
    fix = f'run: pip install "jaxlib>=0.10.2,<0.13", and {RESTART}'
    assert str(error.value) == f"xlamini needs jaxlib >= 0.10.2 and < 0.13, but jaxlib {version} is installed; {fix}"


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """A folder with a JAX, and with a jaxlib that has a version and nothing else."""
    (tmp_path / "jax.py").write_text("")
    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib/__init__.py").write_text("from jaxlib import version")
    (tmp_path / "jaxlib/version.py").write_text("__version__ = '0.7.2'")
    (tmp_path / "jaxlib-0.7.2.dist-info").mkdir()
    (tmp_path / "jaxlib-0.7.2.dist-info/METADATA").write_text("Name: jaxlib\nVersion: 0.7.2\n")
    return tmp_path


@pytest.mark.full
def test_an_old_jaxlib_is_named_before_something_is_missing_in_it(others: Path) -> None:
    assert "but jaxlib 0.7.2 is installed; run: pip install" in fails("import xlamini", others)


@pytest.mark.full
def test_a_jaxlib_that_pip_replaced_after_its_import_needs_a_restart(others: Path) -> None:
    """As in a notebook, whose first cell imports what a later one upgrades."""
    upgrades = f"import os; os.rename('{others}/jaxlib-0.7.2.dist-info', '{others}/jaxlib-0.12.0.dist-info')"
    told = fails(f"import jaxlib; {upgrades}\nimport xlamini", others)
    assert told.endswith(f"jaxlib 0.12.0 was installed after this process had imported jaxlib 0.7.2; {RESTART}")


@pytest.mark.full
def test_jax_and_xlamini_are_not_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("")
    before = fails("import jax, xlamini", tmp_path)
    assert "jax has been imported in this process by module '__main__', and it and xlamini change the same" in before
    assert f": {RESTART}, and leave that import out, or write `import xlamini.as_jax` above it" in before
    after = fails("import xlamini, jax", tmp_path)
    assert "xlamini has been imported in this process, and it and jax change the same objects" in after
    assert "Write `import xlamini as jax`, or for libraries that import jax, `import xlamini.as_jax` above" in after


@pytest.mark.full
def test_a_library_that_can_do_without_jax_goes_on(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("")
    program = """
        import importlib.util
        import xlamini
        assert importlib.util.find_spec("jax") is not None
        try: import jax
        except ImportError as error: assert error.name == "jax"
        else: raise AssertionError
        assert float(xlamini.grad(lambda x: x * x)(3.0)) == 6.0
    """
    passes(program, tmp_path)
