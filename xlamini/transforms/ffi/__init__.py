"""Private: calls of foreign functions: compiled FFI targets, and Python functions of device buffers."""
