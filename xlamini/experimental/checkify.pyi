# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.checkify.api import (
    ErrorCategory as ErrorCategory, all_checks as all_checks, automatic_checks as automatic_checks, check as check,
    check_error as check_error,
    checkify as checkify, debug_check as debug_check, div_checks as div_checks, float_checks as float_checks,
    index_checks as index_checks, inf_checks as inf_checks, nan_checks as nan_checks, user_checks as user_checks,
)
from xlamini.transforms.checkify.error import (
    Error as Error, JaxRuntimeError as JaxRuntimeError, init_error as init_error,
)
from xlamini.staging.run.diagnostics.failure_location import Place as Place
