"""The endpoints of the REST interface, a module for each part, each with a table `OPERATIONS`."""
