"""`jit`: the public function, its cache misses and what it keeps."""
