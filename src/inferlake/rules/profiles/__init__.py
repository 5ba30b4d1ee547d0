"""The profiles, as rule files."""
