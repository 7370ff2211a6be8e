"""Closing the loops: at one place, from anywhere, and along a path."""
