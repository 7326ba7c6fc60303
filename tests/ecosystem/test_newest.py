"""The weekly command asks for newest versions, and the page on the ecosystem names the versions that were run."""
from __future__ import annotations

import re

from tests.ecosystem import environment
from tests.ecosystem.newest import requirements, summary, unmet
from tests.support.paths import ROOT


def test_few_packages_keep_their_versions() -> None:
    text = "# a comment\n\neinops==0.8.2\nfastprogress==1.0.5\njaxlib==0.10.2\n"
    assert requirements(text) == ["einops", "fastprogress==1.0.5", "jaxlib==0.10.2"]


def test_a_report_is_summarized_by_its_last_error() -> None:
    assert summary("optax: adam failed:\nTraceback\nValueError: no\n") == "ValueError: no"
    assert summary("Traceback:\n  file\nImportError: Upgrade:\n  pip install it\n\n") == "ImportError: Upgrade:"
    assert summary("\n") == "it ended without a word"


def test_packages_that_bound_one_another_are_as_new_as_these_allow() -> None:
    report = (
        "sympy 1.14.0 has requirement mpmath<1.4,>=1.1.0, but you have mpmath 1.4.1.\n"
        "mujoco 4.0.0 has requirement mujoco-core==4.0.0, but you have mujoco-core 4.0.1.\n"
        "mujoco-studio 4.0.0 has requirement mujoco-core==4.0.0, but you have mujoco-core 4.0.1.\n"
        "optax 0.2.8 has requirement jaxlib>=0.11, but you have jaxlib 0.10.2.\n"
        "chex 0.1.92 requires jax, which is not installed.\n"
    )
    assert unmet(report) == ["mpmath<1.4,>=1.1.0", "mujoco-core==4.0.0"]


def test_the_table_has_the_pinned_versions() -> None:
    found = re.findall(r"^\| ([\w.-]+) \| (\d[\w.]*) \|", (ROOT / "docs/ecosystem.md").read_text(), re.M)
    named = {f"{library.partition('.')[0]}=={version}" for library, version in found}
    assert named and named <= set(environment.pinned(False))
