"""Arrays: the class, random keys, layouts, and the ways to the device and back."""
