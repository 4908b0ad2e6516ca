"""Chat independent of the channel: pages, `/memory` commands and conversations. Each channel renders the pages."""
