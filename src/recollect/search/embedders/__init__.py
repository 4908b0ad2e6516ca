"""Embedders: texts to vectors. The interface, the checks, and the forms of the setting MEMORY_EMBEDDER.

::

    (empty) or none           no vectors: words alone decide
    http://HOST/v1#MODEL      any OpenAI-compatible /embeddings endpoint (https too); the key is a setting of its own
    onnx:FOLDER               a folder with an .onnx file and tokenizer.json; needs recollect[onnx]
    package:NAME              an installed Python package that carries such files; needs recollect[onnx]
    package:NAME+TOKENIZER    the same, with tokenizer.json from a second package
    fastembed:MODEL           needs recollect[fastembed]; downloads the model when it is first used

An embedder of your own needs a name, a number of dimensions and `embed`. Nothing is downloaded, and nothing leaves the
machine, unless the setting says so.
"""
