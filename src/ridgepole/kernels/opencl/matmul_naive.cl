// c = a b, one thread an output. FLOPs: 2 m n k. Reads asked: 2 k a output.
kernel void matmul_naive(global const float *a, global const float *b, global float *c, uint m, uint n, uint k) {
    uint col = get_global_id(0), row = get_global_id(1);
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (uint i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}
