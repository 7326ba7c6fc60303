"""Random keys and random bits."""
