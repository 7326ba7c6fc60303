# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.lowering.ffi_rules import ffi_lowering as ffi_lowering
from xlamini.runtime.devices.ffi_registration import (
    include_dir as include_dir, pycapsule as pycapsule, register_ffi_target as register_ffi_target,
    register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable,
    register_ffi_type as register_ffi_type, register_ffi_type_id as register_ffi_type_id,
)
from xlamini.transforms.ffi.ffi_call import ffi_call as ffi_call
