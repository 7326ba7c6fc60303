"""PJRT: devices, arrays, executables and C++ dispatch; the only package that uses the client. Private."""
