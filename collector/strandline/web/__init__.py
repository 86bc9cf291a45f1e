"""The web page: files that the collector serves as they are, and the rules under which a browser may use them."""
