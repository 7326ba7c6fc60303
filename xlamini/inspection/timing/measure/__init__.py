"""The measured times of one program's kernels."""
