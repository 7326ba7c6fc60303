"""Functions exported as StableHLO, which later versions can read, and called again; the face is `xlamini.export`."""
