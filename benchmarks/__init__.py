"""Benchmarks: claims that check their own answers. Not part of the package; run from the repository's root."""
