"""Simulation of a single run or of many runs: integration, joint limits, trajectories and their files."""
