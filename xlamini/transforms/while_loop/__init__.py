"""while_loop: its public function, its primitive, the rules of the primitive, and its lowering."""
