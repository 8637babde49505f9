// x * 2 + 1 in two kernels and in one. Bytes: 8 n a kernel.
#include <metal_stdlib>
using namespace metal;

kernel void double_(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                    constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n) out[i] = x[i] * 2.0f;
}

kernel void plus_one_(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                      constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n) out[i] = x[i] + 1.0f;
}

kernel void double_plus_one_(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                             constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n) out[i] = x[i] * 2.0f + 1.0f;
}
