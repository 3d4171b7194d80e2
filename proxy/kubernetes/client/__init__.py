"""The client of an API server: credentials, list, watch, bind, delete, patch, events and lease over HTTP."""
