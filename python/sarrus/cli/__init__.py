"""The command line."""

from .parser import main as main
