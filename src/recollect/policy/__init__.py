"""What may become a memory: questions asked of a text before it is written.

Each module answers one of them by rules alone: is it a duplicate, is it code, does it hold a secret. They
know nothing about stores, users or models.
"""
