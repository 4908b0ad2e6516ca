"""The agents: what listens to a conversation and decides what of it is worth remembering.

`rules` does it without a model. Everything here stands on the public verbs of the memory and knows no surface.
"""
