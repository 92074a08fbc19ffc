"""Programs: operators and tensors as a graph, and the files that programs are read from."""
