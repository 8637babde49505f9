// c = a b by 64 x 64 tiles: 16 x 16 threads of 4 x 4 outputs each, slices of a and b 16 deep in threadgroup memory.
// FLOPs: 2 m n k. Reads asked: 2 k / 64 an output; threadgroup reads: 8 for 16 multiply-adds.
// A thread's outputs lie SIDE apart, so that neighbouring threads read and write neighbouring elements.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint TILE = 64;
constant constexpr uint DEEP = 16;
constant constexpr uint SIDE = 16;
constant constexpr uint EACH = TILE / SIDE;

kernel void matmul_registers(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                             device float *c [[buffer(2)]], constant uint &m [[buffer(3)]],
                             constant uint &n [[buffer(4)]], constant uint &k [[buffer(5)]],
                             uint2 group [[threadgroup_position_in_grid]],
                             uint2 t [[thread_position_in_threadgroup]]) {
    threadgroup float slice_a[TILE][DEEP];
    threadgroup float slice_b[DEEP][TILE];
    uint row = group.y * TILE, col = group.x * TILE, id = t.y * SIDE + t.x;
    float sum[EACH][EACH] = {};
    for (uint at = 0; at < k; at += DEEP) {
        for (uint j = id; j < TILE * DEEP; j += SIDE * SIDE) {
            uint r = j / DEEP, d = j % DEEP;
            slice_a[r][d] = row + r < m && at + d < k ? a[(row + r) * k + at + d] : 0.0f;
            uint e = j / TILE, q = j % TILE;
            slice_b[e][q] = at + e < k && col + q < n ? b[(at + e) * n + col + q] : 0.0f;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint d = 0; d < DEEP; d++) {
            float left[EACH], right[EACH];
            for (uint i = 0; i < EACH; i++) {
                left[i] = slice_a[t.y + i * SIDE][d];
                right[i] = slice_b[d][t.x + i * SIDE];
            }
            for (uint i = 0; i < EACH; i++)
                for (uint j = 0; j < EACH; j++) sum[i][j] += left[i] * right[j];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint i = 0; i < EACH; i++)
        for (uint j = 0; j < EACH; j++) {
            uint r = row + t.y + i * SIDE, q = col + t.x + j * SIDE;
            if (r < m && q < n) c[r * n + q] = sum[i][j];
        }
}
