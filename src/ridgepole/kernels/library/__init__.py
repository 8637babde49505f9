"""One file a family of kernels: what each computes and costs. The text that runs is in the backends' folders."""
