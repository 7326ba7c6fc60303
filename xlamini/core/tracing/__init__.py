"""The tracer and the builder, and what Python may ask of a traced value."""
