"""The wire contract: pydantic models of requests, events and errors. Imports pydantic alone."""
