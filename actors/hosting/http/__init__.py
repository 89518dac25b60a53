"""`kizuki serve`: the HTTP API, its OpenAPI document, the event stream, and the live page."""
