# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.staging.run.diagnostics.cache_report import (
    Entry as Entry,
    Stats as Stats,
    clear as clear,
    directory as directory,
    entries as entries,
    explain as explain,
    stats as stats,
)
