"""Plans that are kept while buffers come and go, and which buffers a small memory should hold."""
