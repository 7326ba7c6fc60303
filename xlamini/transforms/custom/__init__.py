"""Rules that users write: custom derivatives and custom batching."""
