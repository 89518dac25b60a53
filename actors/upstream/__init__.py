"""Sessions that live in other tools: following their transcripts, and telling a person's turns from everything else."""
