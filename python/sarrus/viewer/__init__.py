"""Mechanisms and motions in 3D in the browser."""
