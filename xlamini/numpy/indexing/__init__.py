"""Indexing: `x[index]`, `x.at[index]`, `take` and the index tricks, from the parsed index to gathers and slices."""
