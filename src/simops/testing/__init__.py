"""Conformance kits for plugin authors."""
