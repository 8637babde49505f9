// out[i] = a[(i * stride) mod n], n a power of two. Useful bytes: 8 n; sectors moved: by the stride.
extern "C" __global__ void strided_copy(const float *__restrict__ a, float *__restrict__ out, unsigned n,
                                        unsigned stride) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[(i * stride) & (n - 1)];
}
