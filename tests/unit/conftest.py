"""Few random examples where a developer waits, many in CI."""

import os

from hypothesis import settings

settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=200, deadline=None)
settings.load_profile("thorough" if os.environ.get("CI") else "quick")
