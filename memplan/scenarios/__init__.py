"""What joins programs: together in one arena, at every size, on the paths of control flow."""
