"""The flags of platforms and of their devices: most are read when a platform is first used."""

from __future__ import annotations

from typing import Final

from xlamini.core.flags.config import DISPATCH, Flag

platforms: Final = Flag(
    "platforms", None, "platforms to use, best first: 'cuda,cpu'; the first must work", affects=DISPATCH, type=str,
    optional=True,
)
pjrt_plugins: Final = Flag(
    "pjrt_plugins", None, "more platforms, by the paths of their plugins: 'name:/path.so,...'", type=str, optional=True
)
ALLOCATORS = ("default", "platform", "bfc", "cuda_async", "vmm")
allocator: Final = Flag(
    "allocator", None, "who hands out a GPU's memory", type=str, optional=True, choices=ALLOCATORS
)
memory_fraction: Final = Flag(
    "memory_fraction", None, "how much of a GPU's memory to use, between 0 and 1", type=float, optional=True
)
preallocate: Final = Flag(
    "preallocate", None, "whether that share of a GPU's memory is taken at the start", type=bool, optional=True
)
num_cpu_devices: Final = Flag(
    "num_cpu_devices", -1, "how many devices the CPU shows; -1: as many as XLA_FLAGS says, else one"
)
keep_freed_memory: Final = Flag(
    "keep_freed_memory", True, "keep what CPU programs free for the next ones; read when the CPU is first used"
)
zero_copy_arguments: Final = Flag(
    "zero_copy_arguments", False, "calls may read NumPy arguments after they have returned, so leave these unchanged",
    affects=DISPATCH,
)  # fmt: skip
sort_devices_by_process_index: Final = Flag(
    "sort_devices_by_process_index", True, "devices() lists the devices of process 0 first, and so on; else by id"
)
pjrt_client_create_options: Final = Flag(
    "pjrt_client_create_options", None, "options for the clients of plugins: 'name:value;...'", type=str, optional=True
)
cuda_visible_devices: Final = Flag("cuda_visible_devices", "all", "the GPUs that CUDA shows, by number: '0,2'")
rocm_visible_devices: Final = Flag("rocm_visible_devices", "all", "the GPUs that ROCm shows, by number: '0,2'")
mock_num_gpu_processes: Final = Flag(
    "mock_num_gpu_processes", 0, "act as one of so many processes with GPUs, whose collectives do nothing"
)
mock_gpu_topology: Final = Flag("mock_gpu_topology", "", "act as part of 'slices x hosts per slice x GPUs per host'")
