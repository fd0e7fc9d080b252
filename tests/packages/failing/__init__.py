"""A package that cannot be imported while a file called `broken` lies beside it."""

from . import good as good
from . import weak as weak
