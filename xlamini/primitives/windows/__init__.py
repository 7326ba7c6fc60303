"""Operations on windows that slide over an array: convolution, pooling, and what their derivatives are made of."""
