"""Private: what users call. grad, vmap, scan, cond and the rest, each with its primitive if it has one."""
