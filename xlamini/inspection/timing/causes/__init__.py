"""What takes time and can be avoided, as a trace and its programs show it."""
