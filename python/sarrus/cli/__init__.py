"""Command line of sarrus."""

from .parser import main as main
