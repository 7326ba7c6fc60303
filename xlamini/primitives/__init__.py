"""The first-order vocabulary: everything about an operation in one place, one operation or one family a file."""
