"""What knows a format: a folder for each runtime, which reads, measures and writes its files."""
