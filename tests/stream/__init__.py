"""Tests of the delta stream."""
