"""check-job: each finding has a request that has it and one that has not."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator import explaining
from evaluator.errors import Mistake
from evaluator.registry import builtin_rules
from evaluator.sagemaker.check_job import Flaw, check_request, checks, limits, read_request
from evaluator.sagemaker.check_job import _create_training_job as create_training_job
from evaluator.sagemaker.check_job import _estimator as estimator
from evaluator.sagemaker.check_job._hosted import COLLECTIONS, OURS, PROFILER_RULES, RULES, parameters_of
from evaluator.sagemaker.distributed import KNOWN_ERROR
from tests.commands.program import call

IMAGE = "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"
CUSTOM_IMAGE = "864354269164.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rule-evaluator:latest"
OWN_IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/my-rules:1"
TRAINING = "763104351884.dkr.ecr.us-east-1.amazonaws.com/{}:2.3.1-gpu-py311"

Change = Mapping[str, Any]


def rule(name: str = "VanishingGradient", image: str = IMAGE, **parameters: str) -> dict[str, Any]:
    """A rule of the hosted service, named as itself."""
    given = {"rule_to_invoke": name, **parameters}
    return {"RuleConfigurationName": name, "RuleEvaluatorImage": image, "RuleParameters": given}


def collection(name: str, **parameters: str) -> dict[str, Any]:
    """A collection with its parameters; an underscore stands for the dot in theirs."""
    return {"CollectionName": name, "CollectionParameters": parameters}


def hook(*collections: dict[str, Any], **parameters: str) -> dict[str, Any]:
    """A hook that saves these."""
    return {"S3OutputPath": "s3://bucket/out", "HookParameters": parameters, "CollectionConfigurations": [*collections]}


GRADIENTS = collection("gradients", save_interval="500")


def request(*, framework: str = "pytorch-training", **changes: Any) -> dict[str, Any]:
    """A request with which nothing is wrong, and what is to be different in it."""
    good = {
        "TrainingJobName": "job",
        "RoleArn": "arn:aws:iam::111122223333:role/x",
        "AlgorithmSpecification": {"TrainingImage": TRAINING.format(framework), "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.p3.2xlarge", "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
        "DebugHookConfig": hook(GRADIENTS),
        "DebugRuleConfigurations": [rule()],
    }
    return {key: value for key, value in {**good, **changes}.items() if value is not None}


def rules(*entries: dict[str, Any], saved: tuple[dict[str, Any], ...] = (GRADIENTS,), **changes: Any) -> dict[str, Any]:
    """A request with these rules."""
    return request(DebugRuleConfigurations=[*entries], DebugHookConfig=hook(*saved), **changes)


def flaws_of(document: dict[str, Any]) -> list[Flaw]:
    """All that is wrong with it; the document is left as it was."""
    read = read_request(deepcopy(document), "request.json")
    assert not isinstance(read, Mistake)
    return check_request(read)


def instances(count: int) -> dict[str, Any]:
    """So many instances."""
    return {"InstanceCount": count, "InstanceType": "ml.p3.16xlarge", "VolumeSizeInGB": 30}


CHECKPOINTS = {"S3Uri": "s3://bucket/checkpoints"}
SMDDP = {"sagemaker_distributed_dataparallel_enabled": "true"}

FIRING: dict[str, tuple[dict[str, Any], str, str, str]] = {
    # name: request, severity, where, part of what is wrong
    "data parallel with checkpoints": (
        request(HyperParameters=SMDDP, CheckpointConfig=CHECKPOINTS),
        "error",
        "CheckpointConfig",
        KNOWN_ERROR,
    ),
    "Horovod with checkpoints": (
        request(HyperParameters={"sagemaker_mpi_enabled": "true"}, CheckpointConfig=CHECKPOINTS),
        "error",
        "CheckpointConfig",
        KNOWN_ERROR,
    ),
    "several instances with checkpoints": (
        request(ResourceConfig=instances(2), CheckpointConfig=CHECKPOINTS),
        "warning",
        "CheckpointConfig",
        "on 2 instances",
    ),
    "a parameter server": (
        request(HyperParameters={"sagemaker_parameter_server_enabled": "true"}),
        "error",
        "HyperParameters.sagemaker_parameter_server_enabled",
        "does not support distributed training with parameter servers",
    ),
    "model parallel": (
        request(HyperParameters={"mp_parameters": '{"partitions": 2}', "sagemaker_mpi_enabled": "true"}),
        "error",
        "HyperParameters.mp_parameters",
        "does not support SageMaker's distributed model parallel",
    ),
    "data parallel with MXNet": (
        request(framework="mxnet-training", HyperParameters=SMDDP),
        "warning",
        "HyperParameters.sagemaker_distributed_dataparallel_enabled",
        "does not have SageMaker distributed data parallel",
    ),
    "more than 20 rules": (
        rules(*({**rule(), "RuleConfigurationName": f"r{number}"} for number in range(21))),
        "error",
        "DebugRuleConfigurations",
        "there are 21 rules",
    ),
    "more than 20 profiler rules": (
        request(
            ProfilerRuleConfigurations=[
                {**rule("ProfilerReport"), "RuleConfigurationName": f"p{number}"} for number in range(21)
            ]
        ),
        "error",
        "ProfilerRuleConfigurations",
        "there are 21 rules",
    ),
    "more than 20 collections": (
        request(DebugHookConfig=hook(GRADIENTS, *(collection(f"c{number}") for number in range(20)))),
        "error",
        "DebugHookConfig",
        "there are 21 collections",
    ),
    "a value over 256 characters": (
        rules(rule("ExplodingTensor", tensor_regex="a" * 257)),
        "error",
        "DebugRuleConfigurations[0]",
        "parameter 'tensor_regex' has a value of 257 characters",
    ),
    "a collection's name over 256 characters": (
        request(DebugHookConfig=hook(GRADIENTS, collection("c" * 257))),
        "error",
        "DebugHookConfig.CollectionConfigurations[1]",
        "the name of the collection has 257 characters",
    ),
    "a parameter's name over 256 characters": (
        rules(rule(**{"p" * 257: "1"})),
        "error",
        "DebugRuleConfigurations[0]",
        "a parameter's name has 257 characters",
    ),
    "more than 100 parameters": (
        rules(rule(image=OWN_IMAGE, **{f"p{number}": "1" for number in range(100)})),
        "error",
        "DebugRuleConfigurations[0]",
        "there are 101 parameters",
    ),
    "an image's URI over 255 characters": (
        rules(rule(image=f"{OWN_IMAGE}{'1' * 255}")),
        "error",
        "DebugRuleConfigurations[0].RuleEvaluatorImage",
        "characters",
    ),
    "a value that is no text": (
        rules(rule(threshold=0.1)),  # type: ignore[arg-type]
        "error",
        "DebugRuleConfigurations[0]",
        "parameter 'threshold' is 0.1",
    ),
    "a name over 256 characters": (
        rules({**rule(), "RuleConfigurationName": "n" * 257}),
        "error",
        "DebugRuleConfigurations[0]",
        "the name has 257 characters",
    ),
    "no name": (
        rules({key: value for key, value in rule().items() if key != "RuleConfigurationName"}),
        "error",
        "DebugRuleConfigurations[0].RuleConfigurationName",
        "is missing",
    ),
    "no image": (
        rules({key: value for key, value in rule().items() if key != "RuleEvaluatorImage"}),
        "error",
        "DebugRuleConfigurations[0].RuleEvaluatorImage",
        "is missing",
    ),
    "no place for the tensors": (
        request(DebugHookConfig={"CollectionConfigurations": [GRADIENTS]}),
        "error",
        "DebugHookConfig.S3OutputPath",
        "is missing",
    ),
    "an image of another region": (
        rules(rule(image="929884845733.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-debugger-rules:latest")),
        "error",
        "DebugRuleConfigurations[0].RuleEvaluatorImage",
        "is in region 'eu-west-1', and the job runs in 'us-east-1'",
    ),
    "an image of another partition": (
        rules(rule(image="618459771430.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-debugger-rules:latest")),
        "error",
        "DebugRuleConfigurations[0].RuleEvaluatorImage",
        "is in partition 'aws-cn', and the job runs in 'aws'",
    ),
    "another partition, told by the role": (
        request(
            RoleArn="arn:aws-cn:iam::111122223333:role/x", AlgorithmSpecification={"TrainingImage": "mine/pytorch:1"}
        ),
        "error",
        "DebugRuleConfigurations[0].RuleEvaluatorImage",
        "is in partition 'aws', and the job runs in 'aws-cn'",
    ),
    "images of two regions": (
        rules(
            rule(),
            rule("ExplodingTensor", "929884845733.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-debugger-rules:latest"),
            AlgorithmSpecification={"TrainingImage": "mine/pytorch:1"},
        ),
        "error",
        "DebugRuleConfigurations[1].RuleEvaluatorImage",
        "and that of an earlier rule in 'us-east-1'",
    ),
    "a domain of another partition": (
        rules(
            rule(image="618459771430.dkr.ecr.cn-north-1.amazonaws.com/sagemaker-debugger-rules:latest"),
            RoleArn="arn:aws-cn:iam::111122223333:role/x",
            AlgorithmSpecification={"TrainingImage": "mine/pytorch:1"},
        ),
        "error",
        "DebugRuleConfigurations[0].RuleEvaluatorImage",
        "hosts in region 'cn-north-1' do not end in 'amazonaws.com'",
    ),
    "an account of another region": (
        rules(rule(image=IMAGE.replace("503895931360", "929884845733"))),
        "warning",
        "DebugRuleConfigurations[0].RuleEvaluatorImage",
        "account 929884845733 is not that of the hosted service in region 'us-east-1'",
    ),
    "an image from elsewhere": (
        rules(rule(image="docker.io/library/rules:1")),
        "warning",
        "DebugRuleConfigurations[0].RuleEvaluatorImage",
        "is no image in Amazon ECR",
    ),
    "a rule file in the image for built-in rules": (
        rules(rule("Mine", source_s3_uri="s3://bucket/mine.py")),
        "error",
        "DebugRuleConfigurations[0].RuleEvaluatorImage",
        "runs no rule files",
    ),
    "a rule file without the name of the rule": (
        rules(
            {
                "RuleConfigurationName": "mine",
                "RuleEvaluatorImage": CUSTOM_IMAGE,
                "RuleParameters": {"source_s3_uri": "s3://bucket/mine.py"},
            }
        ),
        "error",
        "DebugRuleConfigurations[0]",
        "'source_s3_uri' is given without 'rule_to_invoke'",
    ),
    **{
        f"{name} with PyTorch": (
            rules(rule(name), saved=(collection("trees"), collection("feature_importance"))),
            "warning",
            "DebugRuleConfigurations[0]",
            f"rule {name} is for XGBoost, and the job trains with pytorch",
        )
        for name in ("TreeDepth", "FeatureImportanceOverweight", "CreateXgboostReport")
    },
    "a rule for deep learning with XGBoost": (
        request(framework="sagemaker-xgboost"),
        "warning",
        "DebugRuleConfigurations[0]",
        "rule VanishingGradient is for deep learning",
    ),
    "a collection that is not saved": (
        rules(rule("WeightUpdateRatio")),
        "error",
        "DebugRuleConfigurations[0]",
        "rule WeightUpdateRatio needs collection 'weights', and no collection that is saved has it",
    ),
    "a collection of the parameters that is not saved": (
        rules(rule("AllZero", collection_names="biases")),
        "error",
        "DebugRuleConfigurations[0]",
        "needs collection 'biases'",
    ),
    "a pattern that nothing saved can match": (
        rules(rule("DeadRelu")),
        "warning",
        "DebugRuleConfigurations[0]",
        "needs regex '.*relu_output'",
    ),
    "the guide's misspelled collection of trees": (
        rules(rule("TreeDepth"), saved=(collection("tree"),), framework="sagemaker-xgboost"),
        "warning",
        "DebugRuleConfigurations[0]",
        "needs tensor 'trees/Node'",
    ),
    "no hook": (request(DebugHookConfig=None), "error", "DebugHookConfig", "nothing is saved for the rules"),
    "an interval above num_steps": (
        rules(rule("WeightUpdateRatio", num_steps="100"), saved=(collection("weights", save_interval="500"),)),
        "error",
        "DebugRuleConfigurations[0]",
        "compares values at most 100 steps apart, and one in 500 is saved",
    ),
    "the default interval above num_steps": (
        rules(rule("WeightUpdateRatio", num_steps="100"), saved=(collection("weights"),)),
        "error",
        "DebugRuleConfigurations[0]",
        "one in 500 is saved (the hook's default)",
    ),
    "an interval above the number of rounds": (
        rules(
            rule("LossNotDecreasing"),
            saved=(collection("losses", save_interval="500"),),
            framework="sagemaker-xgboost",
            HyperParameters={"num_round": "50"},
        ),
        "warning",
        "DebugRuleConfigurations[0]",
        "of 50 steps (HyperParameters.num_round) only step 0 is saved",
    ),
    "an interval above end_step": (
        rules(rule("LossNotDecreasing", end_step="400"), saved=(collection("losses"),)),
        "warning",
        "DebugRuleConfigurations[0]",
        "of 400 steps (end_step) only step 0 is saved",
    ),
    "a name given twice": (
        rules(rule(), rule()),
        "error",
        "DebugRuleConfigurations[1]",
        "configuration name 'VanishingGradient' is given twice",
    ),
    "a name of a profiler rule too": (
        request(ProfilerRuleConfigurations=[{**rule("ProfilerReport"), "RuleConfigurationName": "VanishingGradient"}]),
        "error",
        "ProfilerRuleConfigurations[0]",
        "is given twice",
    ),
    "a collection given twice": (
        request(DebugHookConfig=hook(GRADIENTS, collection("gradients", save_interval="10"))),
        "warning",
        "DebugHookConfig.CollectionConfigurations[1]",
        "collection 'gradients' is given twice",
    ),
    "DebugRulesConfigurations": (
        {**request(DebugRuleConfigurations=None), "DebugRulesConfigurations": [rule()]},
        "error",
        "DebugRulesConfigurations",
        "'DebugRulesConfigurations' is not known",
    ),
    "a misspelled field": (
        rules({**rule(), "RuleParameter": {}}),
        "error",
        "DebugRuleConfigurations[0].RuleParameter",
        "'RuleParameter' is not known",
    ),
    "a field of nobody": (
        rules({**rule(), "Colour": "red"}),
        "error",
        "DebugRuleConfigurations[0].Colour",
        "'Colour' is not known",
    ),
    "an unknown rule": (
        rules(rule("VanishingGradiant")),
        "error",
        "DebugRuleConfigurations[0]",
        "rule 'VanishingGradiant' is not known",
    ),
    "an unknown profiler rule": (
        request(ProfilerRuleConfigurations=[rule("ProfilerReprot")]),
        "error",
        "ProfilerRuleConfigurations[0]",
        "rule 'ProfilerReprot' is not known",
    ),
    "a rule that only this program has": (
        rules(rule("LossSpike")),
        "error",
        "DebugRuleConfigurations[0]",
        "rule 'LossSpike' is not one of the hosted service's",
    ),
    "an unknown parameter": (
        rules(rule(treshold="1e-8")),
        "warning",
        "DebugRuleConfigurations[0]",
        "parameter 'treshold' of VanishingGradient is not known and is ignored",
    ),
    "a parameter that only this program has": (
        rules(rule(consecutive="3")),
        "warning",
        "DebugRuleConfigurations[0]",
        "parameter 'consecutive' of VanishingGradient is not one of the hosted service's",
    ),
    "a parameter of another trial for a rule without one": (
        rules(rule(other_trial_0="s3://b/o")),
        "warning",
        "DebugRuleConfigurations[0]",
        "VanishingGradient does not compare with other trials",
    ),
    "a value that does not fit": (
        rules(rule(threshold="small")),
        "error",
        "DebugRuleConfigurations[0]",
        "parameter 'threshold' is 'small'",
    ),
    "a required parameter that is missing": (
        rules(rule("AllZero")),
        "error",
        "DebugRuleConfigurations[0]",
        "neither 'collection_names' nor 'tensor_regex' is given",
    ),
    "no rule named": (
        rules({**rule(), "RuleParameters": {}}),
        "error",
        "DebugRuleConfigurations[0]",
        "'rule_to_invoke' is missing",
    ),
    "rules that are no list": (
        request(DebugRuleConfigurations={"a": 1}),
        "error",
        "DebugRuleConfigurations",
        "is {'a': 1}",
    ),
}

QUIET: dict[str, dict[str, Any]] = {
    "a plain request": request(),
    "data parallel without checkpoints": request(HyperParameters=SMDDP, ResourceConfig=instances(2)),
    "data parallel switched off, with checkpoints": request(
        HyperParameters={"sagemaker_distributed_dataparallel_enabled": "false"}, CheckpointConfig=CHECKPOINTS
    ),
    "checkpoints on one instance": request(CheckpointConfig=CHECKPOINTS),
    "data parallel and checkpoints without Debugger": request(
        HyperParameters=SMDDP, CheckpointConfig=CHECKPOINTS, DebugHookConfig=None, DebugRuleConfigurations=None
    ),
    "Horovod": request(HyperParameters={"sagemaker_mpi_enabled": "true"}, ResourceConfig=instances(4)),
    "data parallel with TensorFlow": request(framework="tensorflow-training", HyperParameters=SMDDP),
    "a parameter server without Debugger": request(
        HyperParameters={"sagemaker_parameter_server_enabled": "true"},
        DebugHookConfig=None,
        DebugRuleConfigurations=None,
    ),
    "a parameter server switched off": request(HyperParameters={"sagemaker_parameter_server_enabled": "false"}),
    "model parallel without parameters": request(HyperParameters={"mp_parameters": "{}"}),
    "20 rules": rules(*({**rule(), "RuleConfigurationName": f"r{number}"} for number in range(20))),
    "20 rules and 20 profiler rules": rules(
        *({**rule(), "RuleConfigurationName": f"r{number}"} for number in range(20)),
        ProfilerRuleConfigurations=[
            {**rule("ProfilerReport"), "RuleConfigurationName": f"p{number}"} for number in range(20)
        ],
    ),
    "20 collections": request(DebugHookConfig=hook(GRADIENTS, *(collection(f"c{number}") for number in range(19)))),
    "a value of 256 characters": rules(rule("ExplodingTensor", tensor_regex="a" * 256)),
    "a collection's name of 256 characters": request(DebugHookConfig=hook(GRADIENTS, collection("c" * 256))),
    "100 parameters": rules(rule("Mine", OWN_IMAGE, **{f"p{number}": "1" for number in range(99)})),
    "a name of 256 characters": rules({**rule(), "RuleConfigurationName": "n" * 256}),
    "an own image in the region": rules(rule(image=OWN_IMAGE)),
    "a job in China": rules(
        rule(image="618459771430.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-debugger-rules:latest"),
        RoleArn="arn:aws-cn:iam::111122223333:role/x",
        AlgorithmSpecification={"TrainingImage": "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/pytorch-training:2"},
    ),
    "a region that nothing tells": request(AlgorithmSpecification={"TrainingImage": "mine/pytorch:1"}),
    "a rule file in the image for custom rules": rules(rule("Mine", CUSTOM_IMAGE, source_s3_uri="s3://b/mine.py")),
    "a rule in an own image": rules(rule("Mine", OWN_IMAGE)),
    "an own image that names no rule": rules({**rule(image=OWN_IMAGE), "RuleParameters": {}}),
    "a rule that only this program has, in its image": rules(rule("LossSpike", OWN_IMAGE)),
    "a parameter that only this program has, in its image": rules(rule(image=OWN_IMAGE, consecutive="3")),
    "a range of steps": rules(rule(start_step="100", end_step="2000")),
    "another trial": rules(rule("SimilarAcrossRuns", other_trial_0="s3://bucket/other/debug-output")),
    "rules for XGBoost with XGBoost": rules(
        rule("TreeDepth"),
        rule("FeatureImportanceOverweight"),
        rule("CreateXgboostReport"),
        saved=(collection("trees"), collection("feature_importance"), collection("metrics")),
        framework="sagemaker-xgboost",
    ),
    "a rule for XGBoost where the framework is not known": rules(
        rule("TreeDepth"), saved=(collection("trees"),), AlgorithmSpecification={"TrainingImage": "mine/train:1"}
    ),
    "a file's class with the name of a rule for XGBoost": rules(
        rule("TreeDepth", CUSTOM_IMAGE, source_s3_uri="s3://b/mine.py")
    ),
    "a rule for any framework with XGBoost": rules(
        rule("LossNotDecreasing"), saved=(collection("losses", save_interval="5"),), framework="sagemaker-xgboost"
    ),
    "losses, which are saved anyway": rules(rule("LossNotDecreasing"), rule("Overfit"), saved=()),
    "everything saved": rules(rule("WeightUpdateRatio"), rule("DeadRelu"), saved=(collection("all"),)),
    "everything saved by the hook": request(
        DebugRuleConfigurations=[rule("WeightUpdateRatio"), rule("DeadRelu")], DebugHookConfig=hook(save_all="true")
    ),
    "a collection with a pattern": rules(
        rule("DeadRelu"), saved=(collection("relu_output", include_regex=".*relu_output"),)
    ),
    "a collection that the script fills": rules(rule("SaturatedActivation"), saved=(collection("my_activations"),)),
    "a pattern of the user's own": rules(rule("UnchangedTensor", tensor_regex="conv1"), saved=(collection("weights"),)),
    "labels and predictions by their names": rules(
        rule("ClassImbalance"), rule("Confusion"), saved=(collection("labels"), collection("predictions"))
    ),
    "an interval of num_steps": rules(
        rule("WeightUpdateRatio", num_steps="500"), saved=(collection("weights", save_interval="500"),)
    ),
    "an interval for training below num_steps": rules(
        rule("WeightUpdateRatio", num_steps="100"), saved=(collection("weights", **{"train.save_interval": "50"}),)
    ),
    "an interval of the hook below num_steps": request(
        DebugRuleConfigurations=[rule("WeightUpdateRatio", num_steps="100")],
        DebugHookConfig=hook(collection("weights"), save_interval="100"),
    ),
    "steps that are listed": rules(
        rule("WeightUpdateRatio", num_steps="1"), saved=(collection("weights", save_steps="0,1,2"),)
    ),
    "num_steps of a rule that compares further back": rules(
        rule("LossNotDecreasing", num_steps="10"), saved=(collection("losses", save_interval="500"),)
    ),
    "enough rounds": rules(
        rule("LossNotDecreasing"),
        saved=(collection("losses", save_interval="5"),),
        framework="sagemaker-xgboost",
        HyperParameters={"num_round": "50"},
    ),
    "one step is enough for a rule without history": request(HyperParameters={"max_steps": "100"}),
    "profiler rules only": request(
        DebugRuleConfigurations=None,
        ProfilerRuleConfigurations=[rule("ProfilerReport", CPUBottleneck_cpu_threshold="90")],
    ),
    "a hook only": request(DebugRuleConfigurations=None),
    "actions": rules(rule(action_json='[{\\"name\\": \\"stoptraining\\"}]')),
    "a name in another case": rules(rule("vanishinggradient")),
    "what DescribeTrainingJob answers beside": {
        **request(),
        "TrainingJobArn": "arn:aws:sagemaker:us-east-1:111122223333:training-job/job",
        "TrainingJobStatus": "Completed",
        "DebugRuleEvaluationStatuses": [],
    },
}


@pytest.mark.parametrize("name", FIRING)
def test_a_request_with_a_flaw_is_told_of_it_and_of_what_would_be_right(name: str):
    document, severity, where, what = FIRING[name]

    found = [flaw for flaw in flaws_of(document) if flaw.where == where and what in flaw.what]

    assert [flaw.severity for flaw in found] == [severity]
    assert found[0].would_be_right


@pytest.mark.parametrize("name", QUIET)
def test_a_request_without_flaws_is_told_of_none(name: str):
    assert flaws_of(QUIET[name]) == []


@pytest.mark.parametrize(
    "name", ["data parallel with checkpoints", "more than 20 rules", "no hook", "a name given twice"]
)
def test_one_flaw_is_told_once(name: str):
    assert len(flaws_of(FIRING[name][0])) == 1


def test_every_group_of_checks_finds_something_and_can_be_quiet():
    for group, check in checks().items():
        firing = [read_request(document, "") for document, *_ in FIRING.values()]

        assert any(list(check(one)) for one in firing if not isinstance(one, Mistake)), group


def test_all_flaws_are_told_at_once_the_gravest_first():
    document = rules(
        rule("WeightUpdateRatio", treshold="1"),
        rule("TreeDepth", IMAGE.replace("us-east-1", "us-west-2")),
        HyperParameters=SMDDP,
        CheckpointConfig=CHECKPOINTS,
    )

    found = flaws_of(document)

    assert [flaw.severity for flaw in found] == sorted(flaw.severity for flaw in found)
    assert {flaw.where for flaw in found} == {
        "CheckpointConfig",
        "DebugRuleConfigurations[0]",
        "DebugRuleConfigurations[1]",
        "DebugRuleConfigurations[1].RuleEvaluatorImage",
    }


def test_rules_below_a_misspelled_key_are_checked_all_the_same():
    document = {**request(DebugRuleConfigurations=None), "DebugRulesConfigurations": [rule("VanishingGradiant")]}

    assert [flaw.where for flaw in flaws_of(document)] == ["DebugRulesConfigurations", "DebugRuleConfigurations[0]"]


@pytest.mark.parametrize(
    ("saved", "hint"),
    [
        (
            (collection("weigths"),),
            "did you mean 'weights' by 'weigths' in DebugHookConfig.CollectionConfigurations[0]?",
        ),
        ((), "save collection 'weights' (save_interval 500)"),
    ],
)
def test_what_would_be_right_names_the_collection(saved: tuple[dict[str, Any], ...], hint: str):
    [flaw] = flaws_of(rules(rule("WeightUpdateRatio"), saved=saved))

    assert flaw.would_be_right == hint


@pytest.mark.parametrize(
    ("name", "saved", "hint"),
    [
        ("TreeDepth", "tree", "did you mean 'trees' by 'tree' in DebugHookConfig.CollectionConfigurations[0]?"),
        ("TreeDepth", "metrics", "save collection 'trees'"),
        ("FeatureImportanceOverweight", "metrics", "save collection 'feature_importance' (save_interval 500)"),
    ],
)
def test_what_would_be_right_names_a_collection_of_xgboost(name: str, saved: str, hint: str):
    [flaw] = flaws_of(rules(rule(name), saved=(collection(saved),), framework="sagemaker-xgboost"))

    assert flaw.would_be_right == hint


def test_what_would_be_right_is_a_pattern_where_no_collection_is_known():
    [flaw] = flaws_of(rules(rule("SaturatedActivation")))

    assert flaw.would_be_right == ("save a collection of your own with include_regex '.*tanh_input|.*sigmoid_input'")


def test_what_would_be_right_is_the_image_of_the_region():
    document, _, where, _ = FIRING["an image of another region"]

    [flaw] = [one for one in flaws_of(document) if one.where == where]

    assert flaw.would_be_right == f"expected {IMAGE!r}"


def test_the_limits_and_fields_are_those_of_the_api():
    session = pytest.importorskip("botocore.session")
    shape = session.get_session().get_service_model("sagemaker").shape_for
    most = {
        "DebugRuleConfigurations": limits.MOST_RULES,
        "ProfilerRuleConfigurations": limits.MOST_RULES,
        "RuleParameters": limits.MOST_PARAMETERS,
        "CollectionConfigurations": limits.MOST_COLLECTIONS,
        "CollectionParameters": limits.MOST_OF_A_COLLECTION,
        "HookParameters": limits.MOST_OF_THE_HOOK,
        **dict.fromkeys(("ConfigKey", "ConfigValue", "CollectionName", "RuleConfigurationName"), limits.LONGEST),
    }
    entry = shape("DebugRuleConfiguration")

    assert {name: shape(name).metadata["max"] for name in most} == most
    assert {name: entry.members[name].metadata["max"] for name in limits.LONGEST_FIELD} == limits.LONGEST_FIELD
    assert set(entry.members) == set(create_training_job.RULE_KEYS)
    assert set(shape("DebugHookConfig").members) == set(create_training_job.HOOK_KEYS)
    assert set(shape("CollectionConfiguration").members) == set(create_training_job.COLLECTION_KEYS)


def test_the_parameters_that_are_ours_are_told_by_the_words_of_explain():
    assert explaining._OURS == OURS
    assert parameters_of(builtin_rules()["WeightUpdateRatio"]) == [
        *("num_steps", "large_threshold", "small_threshold", "epsilon", "start_step", "end_step"),
    ]


def test_an_unknown_rule_is_answered_with_rules_of_the_hosted_service():
    [flaw] = flaws_of(rules(rule("LossSpik")))

    assert "LossSpike" not in flaw.would_be_right
    assert "LossNotDecreasing" in flaw.would_be_right


def test_the_hosted_rules_are_rules_of_ours_too():
    assert set(builtin_rules()) >= RULES
    assert COLLECTIONS.keys() <= RULES
    assert not RULES & set(PROFILER_RULES)


ESTIMATOR = {
    "framework": "pytorch",
    "framework_version": "2.3",
    "instance_count": 2,
    "distribution": {"smdistributed": {"dataparallel": {"enabled": True}}},
    "rules": [{"name": "VanishingGradient"}, {"name": "ProfilerReport"}],
}


@pytest.mark.parametrize(
    ("changes", "where", "what"),
    [
        ({"checkpoint_s3_uri": "s3://b/c", "checkpoint_local_path": "/opt/ml/c"}, "checkpoint_s3_uri", KNOWN_ERROR),
        (
            {"distribution": {"parameter_server": {"enabled": True}}},
            "distribution.parameter_server",
            "parameter servers",
        ),
        (
            {"distribution": {"smdistributed": {"modelparallel": {"enabled": True}}, "mpi": {"enabled": True}}},
            "distribution.smdistributed.modelparallel",
            "model parallel",
        ),
        ({"debugger_hook_config": False}, "debugger_hook_config", "is off, so nothing is saved"),
        ({"debuger_hook_config": {}}, "debuger_hook_config", "is not known"),
        ({"rules": [{"name": "VanishingGradiant"}]}, "rules[0]", "rule 'VanishingGradiant' is not known"),
        ({"rules": [{"name": "TreeDepth"}]}, "rules[0]", "is for XGBoost"),
        (
            {"rules": [{"name": "VanishingGradient", "collections_to_save": [{"name": "losses"}]}]},
            "rules[0]",
            "needs collection 'gradients'",
        ),
        (
            {"rules": [{"name": "WeightUpdateRatio", "rule_parameters": {"num_steps": "10"}}]},
            "rules[0]",
            "one in 500 is saved (rules[0].collections_to_save (left out))",
        ),
        (
            {"debugger_hook_config": {"collection_configs": [{"name": "gradients"}]}},
            "debugger_hook_config.collection_configs[0]",
            "collection 'gradients' is given twice",
        ),
        ({"region": "eu-west-1", "rules": [{"name": "AllZero", "image_uri": IMAGE}]}, "rules[0].image_uri", "region"),
    ],
)
def test_an_estimator_with_a_flaw_is_told_of_it(changes: Change, where: str, what: str):
    found = flaws_of({**ESTIMATOR, **changes})

    assert [flaw.where for flaw in found if what in flaw.what] == [where]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"distribution": {"mpi": {"enabled": True}}},
        {"distribution": {"parameter_server": {"enabled": False}}},
        {"distribution": None},
        {"checkpoint_s3_uri": "s3://b/c", "instance_count": 1, "distribution": None},
        {"debugger_hook_config": False, "rules": []},
        {"debugger_hook_config": False, "rules": [], "checkpoint_s3_uri": "s3://b/c"},
        {"debugger_hook_config": True},
        {"debugger_hook_config": {"s3_output_path": "s3://b/o", "collection_configs": [{"name": "weights"}]}},
        {"framework": "xgboost", "distribution": None, "rules": [{"name": "FeatureImportanceOverweight"}]},
        {"rules": [{"name": "mine", "source": "mine.py", "rule_to_invoke": "Mine", "image_uri": CUSTOM_IMAGE}]},
        {"rules": [{"name": "DeadRelu"}, {"name": "CheckInputImages"}, {"name": "WeightUpdateRatio"}]},
        {"region": "us-east-1", "rules": [{"name": "LossNotDecreasing", "image_uri": IMAGE}]},
        {
            "debugger_hook_config": {"collection_configs": [{"name": "gradients"}]},
            "rules": [{"name": "VanishingGradient", "collections_to_save": [{"name": "losses"}]}],
        },
    ],
)
def test_an_estimator_without_flaws_is_told_of_none(changes: Change):
    assert flaws_of({**ESTIMATOR, **changes}) == []


@pytest.mark.parametrize("value", [None, 0, "", "text", [], [1], [[]], {}, {"a": [None]}, True, 1e308])
@pytest.mark.parametrize(
    "key", ["DebugRuleConfigurations", "DebugHookConfig", "HyperParameters", "AlgorithmSpecification", "rules", "role"]
)
def test_any_value_anywhere_is_read(key: str, value: object):
    flaws_of({**(ESTIMATOR if key.islower() else request()), key: value})


def write(folder: Path, document: object) -> Path:
    """The document as a file."""
    path = folder / "request.json"
    path.write_text(json.dumps(document))
    return path


def test_the_command_prints_a_line_for_each_finding_and_exits_1(capsys, tmp_path):
    path = write(tmp_path, FIRING["DebugRulesConfigurations"][0])

    ran = call(capsys, "check-job", path)

    assert (ran.code, ran.err) == (1, "")
    right = "write 'DebugRuleConfigurations' (AWS's guide has this misspelling)"
    assert ran.out.splitlines() == [
        f"error: DebugRulesConfigurations: 'DebugRulesConfigurations' is not known; {right}",
        f"{path}: 1 finding",
    ]


def test_the_command_exits_0_where_nothing_is_wrong(capsys, tmp_path):
    path = write(tmp_path, request())

    ran = call(capsys, "check-job", path)

    assert (ran.code, ran.out, ran.err) == (0, f"{path}: nothing wrong\n", "")


def test_the_command_exits_3_where_there_is_nothing_of_debugger(capsys, tmp_path):
    path = write(tmp_path, request(DebugHookConfig=None, DebugRuleConfigurations=None))

    ran = call(capsys, "check-job", path)

    assert (ran.code, ran.err) == (3, "")
    assert ran.out.startswith("note: no hook and no rules")


def test_the_command_gives_a_document(capsys, tmp_path):
    path = write(tmp_path, FIRING["data parallel with checkpoints"][0])

    ran = call(capsys, "check-job", path, "--json")

    document = ran.document
    [finding] = document.pop("findings")
    assert ran.code == 1
    assert document == {
        "schema": 1,
        "request": str(path),
        "shape": "CreateTrainingJob",
        "region": "us-east-1",
        "framework": "pytorch",
        "strategies": ["data-parallel"],
        "notes": [],
    }
    assert finding.keys() == {"where", "what", "would_be_right", "severity"}
    assert "write checkpoints in the training script" in finding["would_be_right"]


def test_the_region_can_be_said(capsys, tmp_path):
    document = request(AlgorithmSpecification={"TrainingImage": "mine/pytorch:1"})
    path = write(tmp_path, document)

    assert "the region is not known" in call(capsys, "check-job", path).out
    assert call(capsys, "check-job", path, "--region", "us-east-1").code == 0
    assert call(capsys, "check-job", path, "--region", "us-west-2").code == 1


def test_a_request_is_read_from_standard_input(capsys, monkeypatch):
    pipe = SimpleNamespace(buffer=io.BytesIO(json.dumps(request()).encode()))
    monkeypatch.setattr("sys.stdin", pipe)

    ran = call(capsys, "check-job", "-")

    assert (ran.code, ran.out) == (0, "standard input: nothing wrong\n")


def test_names_steer_no_terminal_and_break_no_document(capsys, tmp_path):
    path = write(tmp_path, rules({**rule("\x1b[2J"), "RuleConfigurationName": "\ud800[bold]"}, rule("\ud800")))

    text = call(capsys, "check-job", path)
    document = call(capsys, "check-job", path, "--json")

    assert (text.code, document.code) == (1, 1)
    assert "\x1b" not in text.out
    assert document.document["findings"]


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        ("[]", "holds a list; expected an object, a request"),
        ("{}", "is no request of a training job; expected keys of CreateTrainingJob"),
        ('{"a": 1, "a": 2}', "is not JSON: 'a' is given twice in one object"),
        ("{", "is not JSON: line 1, column 2"),
    ],
)
def test_what_is_no_request_is_exit_2(capsys, tmp_path, content: str, mistake: str):
    path = tmp_path / "request.json"
    path.write_text(content)

    ran = call(capsys, "check-job", path)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"{path}: {mistake}")


def test_all_that_is_wrong_with_the_input_is_said_at_once(capsys, tmp_path):
    ran = call(capsys, "check-job", tmp_path / "none.json", "--region", "europe")

    assert ran.code == 2
    assert [line.split(": ")[0] for line in ran.err.splitlines()] == ["--region", str(tmp_path / "none.json")]


PAGE = (Path(__file__).parents[2] / "docs/sagemaker.md").read_text(encoding="utf-8")


def test_the_page_has_every_group_of_checks_and_every_key_of_an_estimator():
    keys = {*checks(), *estimator.READ, *estimator.RULE_KEYS, *estimator.HOOK_KEYS, *estimator.COLLECTION_KEYS}

    assert sorted(key for key in keys if f"`{key}`" not in PAGE) == []


def test_the_page_s_estimator_has_no_flaws():
    [document] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)

    assert flaws_of(json.loads(document)) == []
