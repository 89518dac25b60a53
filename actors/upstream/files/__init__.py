"""Following transcripts in files: every row once, in order, while files grow, move, or are replaced."""
