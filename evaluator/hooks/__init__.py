"""Hooks that save a trial from within a training script, one module per framework, each imported only by its users.

None needs an extra: a hook imports the framework of the script that it is used in, when it is made.
"""
