from . import first as first
