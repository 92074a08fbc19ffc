"""Hands plans to the runtimes that use them: one file or folder for each runtime."""
