"""Integrals of sampled functions."""
from xlamini.numpy import trapezoid as trapezoid

__all__ = ["trapezoid"]
