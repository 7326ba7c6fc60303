"""scan: its public function, its primitive, the rules and residuals of the primitive, and its lowering."""
