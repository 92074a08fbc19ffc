"""The laboratory of memplan: benchmarks, sweeps, studies, a corpus, and the planners of others."""
