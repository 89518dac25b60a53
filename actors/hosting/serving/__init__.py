"""What every HTTP server of this package stands on: where it listens, who may ask, and what a request must look like."""
