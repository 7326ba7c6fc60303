"""Derivatives: forward mode, reverse mode, Jacobians, and checks by finite differences."""
