"""Operations that change shapes: reshapes, slices, pads and joins."""
