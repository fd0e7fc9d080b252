"""PEP 562: a submodule is imported when it is first touched. Counts who asks."""

asked = []


def __getattr__(name):
    asked.append(name)
    if name == "late":
        from importlib import import_module

        return import_module(f"{__name__}.late")
    raise AttributeError(name)
