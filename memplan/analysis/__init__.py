"""What a problem, a model or a plan needs, why, and what would make it less."""
