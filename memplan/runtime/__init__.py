"""Runs the models of frameworks in memory that follows a plan: one slab for all tensors."""
