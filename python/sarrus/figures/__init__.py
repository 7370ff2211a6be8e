"""Drawings of mechanisms, and figures of what trajectories hold."""
