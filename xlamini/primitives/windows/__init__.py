"""Operations on sliding windows: convolution, pooling, and the building blocks of their derivatives."""
