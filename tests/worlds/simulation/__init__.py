"""A collector in one thread, its faults and its clock chosen by a seed.

The same seed is the same story.

Real are SQLite, the write path, the consumer's holdings and the follower; fake are the topic, its
group, the network and time.
"""
