"""The Dask engine: reading and summarising on the workers of a Dask cluster, everything else in the job."""
