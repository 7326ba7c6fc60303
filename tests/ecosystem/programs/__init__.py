"""Programs of libraries that `import jax`: each public function is a program, and returns named arrays."""
