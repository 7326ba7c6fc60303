"""The scan loop: public function, primitive, rewrites of the body, residuals of partial evaluation, and lowering."""
