"""What `import smdebug` gives a rule file: the classes of the rule evaluator."""

from evaluator.user_rules.collection import CollectionKeys
from evaluator.user_rules.configs import ReductionConfig, SaveConfig, SaveConfigMode
from evaluator.user_rules.modes import modes
from evaluator.user_rules.version import __version__

__all__ = ["CollectionKeys", "ReductionConfig", "SaveConfig", "SaveConfigMode", "__version__", "modes"]
