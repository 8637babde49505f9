// out[i] = a[(i * stride) mod n], n a power of two. Useful bytes: 8 n; lines moved: by the stride.
#include <metal_stdlib>
using namespace metal;

kernel void strided_copy(device const float *a [[buffer(0)]], device float *out [[buffer(1)]],
                         constant uint &n [[buffer(2)]], constant uint &stride [[buffer(3)]],
                         uint i [[thread_position_in_grid]]) {
    if (i < n) out[i] = a[(i * stride) & (n - 1)];
}
