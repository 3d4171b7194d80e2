"""The actors themselves: mailboxes, references, futures, and the dispatcher with its pool of threads."""
