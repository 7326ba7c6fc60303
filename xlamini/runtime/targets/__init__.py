"""Targets: accelerators to compile for without having them (PJRT topologies)."""
