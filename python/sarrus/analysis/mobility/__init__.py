"""Mobility, redundant constraints and indeterminate reactions."""
