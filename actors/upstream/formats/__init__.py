"""What each tool's transcripts look like: which rows are a person's turn, one table a format."""
