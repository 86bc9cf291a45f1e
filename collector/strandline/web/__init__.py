"""The web page: files that the collector serves as they are.

And the rules under which a browser may use them.
"""
