"""What a person sees and says, whatever the channel: pages, `/memory` commands, a conversation. Channels draw it."""
