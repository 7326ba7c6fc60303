"""PJRT: devices, arrays, executables, the C++ dispatch path. Nothing else knows the client."""
