"""How people and hosts run kizuki: the command line, and what it shows."""
