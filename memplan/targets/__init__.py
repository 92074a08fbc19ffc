"""Plans in the hands of the runtimes that use them: one file or folder for each."""
