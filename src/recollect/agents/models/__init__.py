"""Models: OpenAI, Anthropic, Gemini, and every server with OpenAI's chat completions API. Only `provider` imports their
library, when a model is opened.
"""

from recollect.agents.models.budget import Account, check_budget, spend
from recollect.agents.models.model import Model, ModelLimits, Reply, Turn, configured_model, open_model
from recollect.agents.models.structured import json_in

__all__ = [
    "Account",
    "Model",
    "ModelLimits",
    "Reply",
    "Turn",
    "check_budget",
    "configured_model",
    "json_in",
    "open_model",
    "spend",
]
