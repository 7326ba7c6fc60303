"""Devices to compile for that are not here."""
