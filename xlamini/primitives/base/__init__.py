"""What families of operations share: their base classes, promotion, precision and operators."""
