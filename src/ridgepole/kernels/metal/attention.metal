// out = softmax(q k^T / sqrt(DEPTH)) v, [heads, n, DEPTH]; one query a thread, tiles of keys in threadgroup memory.
// FLOPs: 4 heads n^2 DEPTH. Bytes: 16 heads n DEPTH. The sum and the maximum are kept as the keys go by.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint QUERIES = 64;
constant constexpr uint KEYS = 32;

kernel void attention(device const float *q [[buffer(0)]], device const float *k [[buffer(1)]],
                      device const float *v [[buffer(2)]], device float *out [[buffer(3)]],
                      constant uint &heads [[buffer(4)]], constant uint &n [[buffer(5)]],
                      uint2 group [[threadgroup_position_in_grid]], uint2 at [[thread_position_in_threadgroup]]) {
    threadgroup float key[KEYS][DEPTH];
    threadgroup float value[KEYS][DEPTH];
    uint t = at.x, row = group.x * QUERIES + t;
    size_t head = size_t(group.y) * n; // in 64 bits: heads * n * DEPTH may pass 32
    float query[DEPTH], sum[DEPTH];
    for (uint d = 0; d < DEPTH; d++) {
        query[d] = row < n ? q[(head + row) * DEPTH + d] * rsqrt(float(DEPTH)) : 0.0f;
        sum[d] = 0.0f;
    }
    // Finite: with fast math the compiler may take infinities for absent.
    float most = -FLT_MAX, total = 0.0f;
    uint last = CAUSAL ? min(n, (group.x + 1) * QUERIES) : n;
    for (uint first = 0; first < last; first += KEYS) {
        for (uint j = t; j < KEYS * DEPTH; j += QUERIES) {
            bool there = first + j / DEPTH < n;
            key[j / DEPTH][j % DEPTH] = there ? k[(head + first) * DEPTH + j] : 0.0f;
            value[j / DEPTH][j % DEPTH] = there ? v[(head + first) * DEPTH + j] : 0.0f;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint seen = min(KEYS, last - first);
        for (uint j = 0; j < seen; j++) {
            if (CAUSAL && first + j > row) break;
            float score = 0.0f;
            for (uint d = 0; d < DEPTH; d++) score += query[d] * key[j][d];
            float above = max(most, score);
            float keep = exp(most - above), weight = exp(score - above);
            total = total * keep + weight;
            for (uint d = 0; d < DEPTH; d++) sum[d] = sum[d] * keep + weight * value[j][d];
            most = above;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (row < n)
        for (uint d = 0; d < DEPTH; d++) out[(head + row) * DEPTH + d] = sum[d] / total;
}
