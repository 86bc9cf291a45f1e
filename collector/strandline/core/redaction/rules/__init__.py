"""What is a secret in a text, as named rules with their examples.

This folder is the same, byte for byte, in both distributions of Strandline: neither imports the other, and what the emitter
hides the collector hides too. Change it in `strandline/core/redaction/rules` and copy it (`make rules`); a test compares.
"""

from .hide import hide as hide
from .names import SECRET_NAME as SECRET_NAME
from .names import is_secret as is_secret
