from . import old as old
