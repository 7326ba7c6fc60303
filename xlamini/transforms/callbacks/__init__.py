"""Calls from compiled programs back into Python: pure_callback, io_callback, debug.callback, debug.print."""
