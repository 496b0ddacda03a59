"""The version, alone: the release writer needs it without the rest of the package."""

__version__ = "0.2.0"
