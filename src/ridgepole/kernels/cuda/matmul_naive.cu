// c = a b, one thread an output. FLOPs: 2 m n k. Reads asked: 2 k an output.
extern "C" __global__ void matmul_naive(const float *__restrict__ a, const float *__restrict__ b,
                                        float *__restrict__ c, unsigned m, unsigned n, unsigned k) {
    unsigned col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (unsigned i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}
