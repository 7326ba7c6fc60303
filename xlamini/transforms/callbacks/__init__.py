"""Python functions that run in the midst of programs: pure_callback, io_callback, and what helps to look inside."""
