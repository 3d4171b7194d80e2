"""Who is in which group: the resolvers that a partition can have, and how they are asked."""
