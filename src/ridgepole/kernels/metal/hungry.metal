// Keeps LIVE values of a thread in registers at once. Bytes: 4 n + 4 n / LIVE.
#include <metal_stdlib>
using namespace metal;

kernel void hungry(device const float *a [[buffer(0)]], device float *out [[buffer(1)]],
                   constant uint &n [[buffer(2)]], uint t [[thread_position_in_grid]]) {
    uint apart = n / LIVE;
    if (t >= apart) return;
    float value[LIVE];
#pragma unroll
    for (uint j = 0; j < LIVE; j++) value[j] = a[t + j * apart];
#pragma unroll
    for (uint r = 0; r < ROUNDS; r++) {
        float mean = 0.0f;
#pragma unroll
        for (uint j = 0; j < LIVE; j++) mean += value[j] * (1.0f / LIVE);
#pragma unroll
        for (uint j = 0; j < LIVE; j++) value[j] = value[j] * 0.5f + mean * 0.5f;
    }
    float sum = 0.0f;
#pragma unroll
    for (uint j = 0; j < LIVE; j++) sum += value[j];
    out[t] = sum;
}
