"""Where values are, and what holds XLA back: devices, shardings, layouts, barriers and tokens."""
