"""The folder of compiled programs: its entries and statistics, why a program misses it, and how to clear it."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.staging.aot.cache_report import Entry as Entry
from xlamini.staging.aot.cache_report import Stats as Stats
from xlamini.staging.aot.cache_report import clear as clear
from xlamini.staging.aot.cache_report import directory as directory
from xlamini.staging.aot.cache_report import entries as entries
from xlamini.staging.aot.cache_report import explain as explain
from xlamini.staging.aot.cache_report import stats as stats

__all__ = ["Entry", "Stats", "clear", "directory", "entries", "explain", "stats"]

_edge_of_face(globals())
