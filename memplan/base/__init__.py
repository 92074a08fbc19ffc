"""What every room uses: errors, notes, sizes, files, optional libraries."""
