"""What the rest of memplan does without, each in one place: readers, writers, runners, searches."""
