"""Operators that run again: a suite of programs, and peers written from their papers."""
