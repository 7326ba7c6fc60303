"""Export of functions as portable StableHLO, and calls of exported functions; the public module is `xlamini.export`."""
