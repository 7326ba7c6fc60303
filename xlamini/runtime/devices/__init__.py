"""Platforms and their devices: which exist, how their libraries are found, loaded and told how to behave."""
