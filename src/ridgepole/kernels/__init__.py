"""The kernels: what each computes (`library`), and one folder a backend that runs them (`opencl`, `cuda`, `metal`)."""
