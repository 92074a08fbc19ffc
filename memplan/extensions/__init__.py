"""Readers, writers and runners that the rest of memplan does without, each in one place."""
