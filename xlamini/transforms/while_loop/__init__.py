"""The while loop: public function, primitive, rewrites of its jaxprs, bounded loops (`max_steps`), and lowering."""
