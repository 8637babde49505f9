// out = a + b. FLOPs: n. Bytes: 12 n.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint BLOCK = 256;
constant constexpr uint LOADS = 4;
constant constexpr uint TILE = 4 * LOADS * BLOCK; // elements of a block of add_stream

kernel void add(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                uint i [[thread_position_in_grid]]) {
    if (i < n) out[i] = a[i] + b[i];
}

kernel void add_wide(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                     device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                     uint quad [[thread_position_in_grid]]) {
    if (quad < n / 4) {
        ((device float4 *)out)[quad] = ((device const float4 *)a)[quad] + ((device const float4 *)b)[quad];
    } else if (quad == n / 4) {
        for (uint i = quad * 4; i < n; i++) out[i] = a[i] + b[i];
    }
}

// A block adds LOADS runs of 4 * BLOCK elements; each thread has its loads of all in flight before the first add.
kernel void add_stream(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                       device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                       uint group [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    uint first = group * TILE;
    if (n - first >= TILE) {
        device const float4 *a4 = (device const float4 *)(a + first) + t;
        device const float4 *b4 = (device const float4 *)(b + first) + t;
        device float4 *out4 = (device float4 *)(out + first) + t;
        float4 x[LOADS], y[LOADS];
        for (uint j = 0; j < LOADS; j++) {
            x[j] = a4[j * BLOCK];
            y[j] = b4[j * BLOCK];
        }
        for (uint j = 0; j < LOADS; j++) out4[j * BLOCK] = x[j] + y[j];
    } else {
        for (uint i = first + t; i < n; i += BLOCK) out[i] = a[i] + b[i];
    }
}
