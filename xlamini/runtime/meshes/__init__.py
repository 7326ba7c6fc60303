"""Many devices in a grid with named axes: how arrays and programs lie on it."""
