"""Platforms and their devices: PJRT clients, plugins, allocator options and FFI targets."""
