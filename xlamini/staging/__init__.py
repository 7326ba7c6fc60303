"""Private: the life of a program. It is traced, called, compiled and run, or compiled ahead of time."""
