"""The agents, which read conversations and decide what is worth remembering.

`rules` does it without a model. Everything here uses the public verbs of the memory.
"""
