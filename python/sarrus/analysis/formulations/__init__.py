"""Equations of motion as the works write them."""
