"""The life of a program: traced, called, compiled, run, or stored ahead of time. Private; the faces are public."""
