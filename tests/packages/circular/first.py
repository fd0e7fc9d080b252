from . import second

value = second.value + 1
