"""The terminal chat: `chat` is the loop, `lines` reads input, `screen` prints. The conversation is `surfaces.chat`."""
