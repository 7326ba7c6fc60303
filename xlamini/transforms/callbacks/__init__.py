"""Host callbacks from compiled programs: pure_callback, io_callback, debug.callback and debug.print."""
