"""Viewer of mechanisms and motions in 3D in the browser."""
