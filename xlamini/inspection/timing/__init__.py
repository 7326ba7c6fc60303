"""Where the time of a recorded trace went: by kernel, equation, line and program."""
