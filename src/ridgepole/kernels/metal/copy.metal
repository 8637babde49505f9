// out = a. Bytes: 8 n.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint BLOCK = 256;
constant constexpr uint LOADS = 4;
constant constexpr uint TILE = 4 * LOADS * BLOCK; // elements of a block of copy_stream

kernel void copy(device const float *a [[buffer(0)]], device float *out [[buffer(1)]],
                 constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n) out[i] = a[i];
}

kernel void copy_wide(device const float *a [[buffer(0)]], device float *out [[buffer(1)]],
                      constant uint &n [[buffer(2)]], uint quad [[thread_position_in_grid]]) {
    if (quad < n / 4) {
        ((device float4 *)out)[quad] = ((device const float4 *)a)[quad];
    } else if (quad == n / 4) {
        for (uint i = quad * 4; i < n; i++) out[i] = a[i];
    }
}

// A block copies LOADS runs of 4 * BLOCK elements; each thread has its loads of all in flight before the first store.
kernel void copy_stream(device const float *a [[buffer(0)]], device float *out [[buffer(1)]],
                        constant uint &n [[buffer(2)]], uint group [[threadgroup_position_in_grid]],
                        uint t [[thread_position_in_threadgroup]]) {
    uint first = group * TILE;
    if (n - first >= TILE) {
        device const float4 *a4 = (device const float4 *)(a + first) + t;
        device float4 *out4 = (device float4 *)(out + first) + t;
        float4 x[LOADS];
        for (uint j = 0; j < LOADS; j++) x[j] = a4[j * BLOCK];
        for (uint j = 0; j < LOADS; j++) out4[j * BLOCK] = x[j];
    } else {
        for (uint i = first + t; i < n; i += BLOCK) out[i] = a[i];
    }
}
