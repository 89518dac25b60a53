"""`kizuki demo`: the story, the process that it kills, what it checks, and how it is told."""
