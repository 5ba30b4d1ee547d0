"""The command `inferlake`."""

from inferlake.cli.app import main

__all__ = ["main"]
