"""Every documented way of starting something, in a fresh environment with the built wheel: `.ci/wheel` runs them."""
