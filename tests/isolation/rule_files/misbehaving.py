# mypy: ignore-errors
"""Rules that go wrong in every way in which a rule can."""

import ctypes
import os
import signal
import sys

from smdebug.rules.rule import Rule


class Quiet(Rule):
    def invoke_at_step(self, step):
        return False


class Hangs(Rule):
    def invoke_at_step(self, step):
        while step >= 3:
            pass


class HangsDeaf(Rule):
    def invoke_at_step(self, step):
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        ctypes.CDLL(None).pause()


class ReadsForEver(Rule):
    def invoke_at_step(self, step):
        while step:
            self.base_trial.saved_values = type(self.base_trial.saved_values)(self.base_trial.index_reader, 0)
            self.base_trial.tensor("gradient/w").value(0)


class Ends(Rule):
    def invoke_at_step(self, step):
        os._exit(7)


class Exits(Rule):
    def invoke_at_step(self, step):
        sys.exit("enough")


class Crashes(Rule):
    def invoke_at_step(self, step):
        ctypes.string_at(0)


class EatsMemory(Rule):
    def invoke_at_step(self, step):
        self.eaten = bytearray(4 * 2**30)


class Raises(Rule):
    def invoke_at_step(self, step):
        if step >= 3:
            return self.ratio(step)

    def ratio(self, step):
        return 1 / (step - step)


class RaisesWhenMade(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        raise KeyError("learning_rate")

    def invoke_at_step(self, step):
        return False


class Floods(Rule):
    def invoke_at_step(self, step):
        sys.stdout.write("flood " * 100_000)


class LeavesChildren(Rule):
    def invoke_at_step(self, step):
        if os.fork() == 0:
            with open(os.environ["CHILD_FILE"], "a") as file:
                file.write(f"{os.getpid()}\n")
            signal.pause()


class ClosesEverything(Rule):
    def invoke_at_step(self, step):
        os.closerange(3, 4096)


class SaysAnything(Rule):
    def invoke_at_step(self, step):
        for number in range(3, 4096):
            try:
                os.write(number, b"\x05\x00\x00\x00\x00\x00\x00\x00hello")
            except OSError:
                pass


class Duck:
    def __init__(self, base_trial):
        self.base_trial = base_trial

    def invoke_at_step(self, step):
        return True


class SeesSecrets(Rule):
    def invoke_at_step(self, step):
        hidden = ("AWS_", "RULE_EVALUATOR_", "MY_API_TOKEN")
        return any(name.startswith(hidden) for name in os.environ)


class TellsTooMuch(Rule):
    def invoke(self, step):
        from smdebug.exceptions import RuleEvaluationConditionMet

        raise RuleEvaluationConditionMet("x" * 10_000_000, step)

    def invoke_at_step(self, step):
        return False


class DiesAfterItsFinding(Rule):
    def invoke_at_step(self, step):
        import threading

        # ends the process a moment after the answer
        threading.Timer(0.05, os._exit, [9]).start()
        return True


class StartsAPool(Rule):
    def invoke_at_step(self, step):
        import subprocess

        sleeper = subprocess.Popen(["sleep", "60"])
        sleeper.terminate()
        return sleeper.wait() != -signal.SIGTERM


class OddDefault(Rule):
    def __init__(self, base_trial, function=abs, names=""):
        super().__init__(base_trial)
        self.names = names

    def invoke_at_step(self, step):
        return self.names not in ("", "gradient,loss")
