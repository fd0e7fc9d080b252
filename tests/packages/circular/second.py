from . import first as first

value = 1
