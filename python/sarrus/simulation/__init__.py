"""Simulation of single and many runs: integration, limits, trajectories and their files."""
