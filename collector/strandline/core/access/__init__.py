"""Access: the value that a request carries, and the part of an answer that it may see."""
