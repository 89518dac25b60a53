"""The tests of both packages, and what they share."""
