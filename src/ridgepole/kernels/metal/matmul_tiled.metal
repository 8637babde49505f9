// c = a b by TILE x TILE tiles of a and b in threadgroup memory. FLOPs: 2 m n k. Reads asked: 2 k / TILE an output.
#include <metal_stdlib>
using namespace metal;

kernel void matmul_tiled(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                         device float *c [[buffer(2)]], constant uint &m [[buffer(3)]],
                         constant uint &n [[buffer(4)]], constant uint &k [[buffer(5)]],
                         uint2 group [[threadgroup_position_in_grid]], uint2 t [[thread_position_in_threadgroup]]) {
    threadgroup float tile_a[TILE][TILE];
    threadgroup float tile_b[TILE][TILE];
    uint col = group.x * TILE + t.x, row = group.y * TILE + t.y;
    float sum = 0.0f;
    for (uint at = 0; at < k; at += TILE) {
        tile_a[t.y][t.x] = row < m && at + t.x < k ? a[row * k + at + t.x] : 0.0f;
        tile_b[t.y][t.x] = at + t.y < k && col < n ? b[(at + t.y) * n + col] : 0.0f;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < TILE; i++) sum += tile_a[t.y][i] * tile_b[i][t.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (row < m && col < n) c[row * n + col] = sum;
}
