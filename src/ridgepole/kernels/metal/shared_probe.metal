// Fills BYTES of threadgroup memory; each thread sums words that others wrote.
#include <metal_stdlib>
using namespace metal;

kernel void shared_probe(device uint *out [[buffer(0)]], constant uint &words [[buffer(1)]],
                         constant uint &rounds [[buffer(2)]], uint t [[thread_position_in_threadgroup]],
                         uint threads [[threads_per_threadgroup]]) {
    threadgroup uint held[BYTES / 4];
    for (uint i = t; i < words; i += threads) held[i] = i;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint sum = 0;
    for (uint r = 0; r < rounds; r++) sum += held[(t + 1 + r * threads) % words];
    out[t] = sum;
}
