"""Programs of both libraries, compiled for accelerators that need not be here, and what XLA says about them."""
