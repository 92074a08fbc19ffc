"""PyTorch: reads exported programs, records runs, measures them, rewrites programs."""
