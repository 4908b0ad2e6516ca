"""The terminal chat: `chat` is the loop, `screen` draws, `lines` reads input. `surfaces.chat` has the conversation."""
