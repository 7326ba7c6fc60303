"""The package `jax` as importlib.metadata sees it: the version whose names and meanings xlamini has."""
from __future__ import annotations

from importlib.metadata import Distribution
from os import PathLike
from pathlib import Path

from xlamini.core.version import JAX_VERSION


class JaxDistribution(Distribution):
    """A package without files; its version is a plain one, as libraries take it apart into three numbers."""

    def read_text(self, filename: str | PathLike[str]) -> str | None:
        return f"Metadata-Version: 2.1\nName: jax\nVersion: {JAX_VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Path:
        return Path(path)
