# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.core.errors import (
    CallbackError as CallbackError, ConcretizationTypeError as ConcretizationTypeError,
    DeletedArrayError as DeletedArrayError, DeviceNotHereError as DeviceNotHereError, FfiTargetError as FfiTargetError,
    ForbiddenCollectiveError as ForbiddenCollectiveError, ForkError as ForkError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    JAXIndexError as JAXIndexError,
    JaxprError as JaxprError, JaxprTypeError as JaxprTypeError, JaxRuntimeError as JaxRuntimeError,
    JAXTypeError as JAXTypeError, KeyReuseError as KeyReuseError, KeyReuseWarning as KeyReuseWarning,
    MissingRule as MissingRule, NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    PlatformError as PlatformError,
    PaddingError as PaddingError, ProcessError as ProcessError,
    ShapeError as ShapeError, ShardingError as ShardingError,
    ShardingTypeError as ShardingTypeError, StaleValueWarning as StaleValueWarning, TargetError as TargetError,
    TooManyCompilationsError as TooManyCompilationsError,
    TracerArrayConversionError as TracerArrayConversionError, TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError, TypePromotionError as TypePromotionError,
    UnexpectedTracerError as UnexpectedTracerError,
)
from xlamini.core.errors.file_errors import LoadError as LoadError, ReportFormatError as ReportFormatError
from xlamini.core.errors.kernel_errors import KernelCheckError as KernelCheckError, KernelError as KernelError
