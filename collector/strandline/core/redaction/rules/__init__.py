"""What is a secret in a text, as named rules with their examples.

Both distributions hold this folder, because neither imports the other and both hide the same
secrets: in the emitter it is a symbolic link to the collector's, and built distributions contain
the files. It runs on Python 3.10, as the emitter does.
"""

from .hide import hide as hide
from .names import SECRET_NAME as SECRET_NAME
from .names import is_secret as is_secret
