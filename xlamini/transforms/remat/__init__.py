"""checkpoint: compute again on the way back what would take memory to keep."""
