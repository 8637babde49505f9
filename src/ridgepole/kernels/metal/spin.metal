// x = x * 0.5 + 1, `rounds` times. FLOPs: 2 threads rounds.
#include <metal_stdlib>
using namespace metal;

kernel void spin(device float *out [[buffer(0)]], constant uint &threads [[buffer(1)]],
                 constant uint &rounds [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    float x = float(i % STARTS);
    for (uint r = 0; r < rounds; r++) x = fma(x, 0.5f, 1.0f);
    if (i < threads) out[i] = x;
}
