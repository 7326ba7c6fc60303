"""Checked programs: `checked` and `checkify`, the user's own checks, and the errors of programs."""
