"""Safety checks of export: the kernels with a stable interface, and the checks that a user can disable."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_STABLE = ("lapack_", "cusolver_", "cublas_", "cusparse_", "cu_lu_pivots", "cu_cholesky_update", "cu_threefry2x32")
"""The name prefixes of kernels whose compatibility jaxlib guarantees."""
_STABLE_ON_TPU = ("Qr", "LuDecomposition", "Eigh", "ProductOfElementaryHouseholderReflectors", "tpu_custom_call")
_OF_SIZES = ("shape_assertion", "stablehlo.dynamic_")
"""The name prefixes of calls that XLA's refinement of symbolic sizes evaluates or replaces."""
_CUSTOM_CALL = "custom_call:"


@dataclass(frozen=True)
class DisabledSafetyCheck:
    """A check of `export` to skip.

    >>> DisabledSafetyCheck.custom_call("my_kernel")
    DisabledSafetyCheck(_impl='custom_call:my_kernel')
    """

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Allow calls on platforms other than the exported ones."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allow calls of this kernel, whose compatibility with later versions is not guaranteed."""
        return cls(f"{_CUSTOM_CALL}{target_name}")

    def is_custom_call(self) -> str | None:
        """The kernel's name if the check is for a custom call, else None."""
        return self._impl.removeprefix(_CUSTOM_CALL) if self._impl.startswith(_CUSTOM_CALL) else None

    def __str__(self) -> str:
        return self._impl


def check_kernels(name: str, kernels: Sequence[str], disabled: Sequence[DisabledSafetyCheck]) -> None:
    """ValueError for kernels whose compatibility with later versions is not guaranteed."""
    allowed = {check.is_custom_call() for check in disabled}
    unstable = [kernel for kernel in kernels if not (_is_stable(kernel) or kernel in allowed)]
    if unstable:
        raise ValueError(
            f"export: {name} calls kernels that later versions may not have: {', '.join(unstable)}; to export it "
            f"anyway, pass disabled_checks=[DisabledSafetyCheck.custom_call({unstable[0]!r})]"
        )


def _is_stable(kernel: str) -> bool:
    return kernel.startswith((*_STABLE, *_OF_SIZES)) or kernel in _STABLE_ON_TPU
