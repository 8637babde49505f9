// c = a b, one thread an output. FLOPs: 2 m n k. Reads asked: 2 k an output.
#include <metal_stdlib>
using namespace metal;

kernel void matmul_naive(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                         device float *c [[buffer(2)]], constant uint &m [[buffer(3)]],
                         constant uint &n [[buffer(4)]], constant uint &k [[buffer(5)]],
                         uint2 at [[thread_position_in_grid]]) {
    uint col = at.x, row = at.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (uint i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}
