"""Problems and plans for people to look at: words for terminals, and pictures."""
