"""checkpoint (rematerialization): recompute values in the backward pass instead of storing them."""
