"""Drawings of mechanisms, and figures and films of trajectories."""
