"""The terminal chat: `chat` is the loop, `screen` draws, `lines` reads what is typed. The conversation is that of `surfaces.chat`."""
