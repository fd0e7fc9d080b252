import warnings

warnings.warn("old is old", UserWarning, stacklevel=2)
