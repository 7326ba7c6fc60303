"""Tests of `import jax` answered by xlamini. Each runs in a process of its own, as the answer stays for good."""
