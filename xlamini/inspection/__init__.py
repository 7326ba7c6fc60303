"""Private: `xlamini.inspect`, one table of equations from the user's line to the kernel, and the views of it."""
