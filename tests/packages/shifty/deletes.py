import sys

del sys.modules[__name__]
