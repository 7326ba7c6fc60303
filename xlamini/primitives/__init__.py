"""Private: the first-order vocabulary. One operation or one family a file, with all its rules."""
