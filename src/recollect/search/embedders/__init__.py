"""Embedders: texts to vectors. What one must be, what is checked, and how the setting MEMORY_EMBEDDER names one.

::

    (empty) or none           no vectors: words alone decide
    http://HOST/v1#MODEL      any OpenAI-compatible /embeddings endpoint (https too); the key is a setting of its own
    onnx:FOLDER               a folder with an .onnx file and tokenizer.json; needs recollect[onnx]
    package:NAME              an installed Python package that carries such files; needs recollect[onnx]
    package:NAME+TOKENIZER    the same, with tokenizer.json from a second package
    fastembed:MODEL           needs recollect[fastembed]; downloads the model when it is first used

A user's own embedder needs a name, a number of dimensions and `embed`, nothing more. Nothing is downloaded, and
nothing leaves the machine, unless the setting says so. Knows nothing about records and databases.
"""
