"""The rules of redaction, shared by both distributions.

Neither distribution imports the other. In the emitter this folder is a symbolic link to the
collector's, and built distributions contain the files. It runs on Python 3.10, as the emitter does.
"""

from .hide import hide as hide
from .names import is_guarded as is_guarded
from .names import is_secret as is_secret
from .values import is_code as is_code
