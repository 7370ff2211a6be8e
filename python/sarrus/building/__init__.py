"""Mechanisms from calls and from tables."""
