"""What an exported program may call: kernels that keep their names and meaning; the checks a user can switch off."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_STABLE = ("lapack_", "cusolver_", "cublas_", "cusparse_", "cu_lu_pivots", "cu_cholesky_update", "cu_threefry2x32")
"""How the names of kernels begin that jaxlib's makers promise to keep."""
_STABLE_ON_TPU = ("Qr", "LuDecomposition", "Eigh", "ProductOfElementaryHouseholderReflectors")
_CUSTOM_CALL = "custom_call:"


@dataclass(frozen=True)
class DisabledSafetyCheck:
    """A check of `export` that shall not be made.

    >>> DisabledSafetyCheck.custom_call("my_kernel")
    DisabledSafetyCheck(_impl='custom_call:my_kernel')
    """

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Let a function be called on another platform than it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Let a function call this kernel, of which nobody promises that later versions have it."""
        return cls(f"{_CUSTOM_CALL}{target_name}")

    def is_custom_call(self) -> str | None:
        """The kernel's name, if it is about one."""
        return self._impl.removeprefix(_CUSTOM_CALL) if self._impl.startswith(_CUSTOM_CALL) else None

    def __str__(self) -> str:
        return self._impl


def check_kernels(name: str, kernels: Sequence[str], disabled: Sequence[DisabledSafetyCheck]) -> None:
    """ValueError for kernels of which nobody promises that later versions have them."""
    allowed = {check.is_custom_call() for check in disabled}
    wanted = [kernel for kernel in kernels if not (_is_stable(kernel) or kernel in allowed)]
    if wanted:
        raise ValueError(
            f"export: {name} calls kernels that later versions may not have: {', '.join(wanted)}; to export it all the "
            f"same, pass disabled_checks=[DisabledSafetyCheck.custom_call({wanted[0]!r})]"
        )


def _is_stable(kernel: str) -> bool:
    return kernel.startswith(_STABLE) or kernel in _STABLE_ON_TPU
