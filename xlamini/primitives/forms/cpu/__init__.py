"""Forms for the CPU: the same values by operations for which XLA has fast code."""
