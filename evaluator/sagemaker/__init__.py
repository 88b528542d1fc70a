"""The file contract of SageMaker processing jobs."""
