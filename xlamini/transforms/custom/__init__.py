"""Rules that users write: custom derivatives, custom batching, roots and linear solves with their own derivatives."""
