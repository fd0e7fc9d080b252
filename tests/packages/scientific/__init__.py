"""The lazy-loader of scientific Python."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submodules=["late"], submod_attrs={"other": ["thing"]}
)
