// c = a b by TILE x TILE tiles of a and b in local memory, one thread an output. FLOPs: 2 m n k. Reads asked:
// 2 k / TILE an output. b's tile lies transposed and a thread keeps 8 partial sums, so that a CPU multiplies 8 pairs at
// once. Inside the matrices the tiles are filled without tests: PoCL makes a slow loop of a tested load.
#define WIDE 8

kernel void matmul_tiled(global const float *a, global const float *b, global float *c, uint m, uint n, uint k) {
    local float8 tile_a[TILE][TILE / WIDE];
    local float8 tile_b[TILE][TILE / WIDE];
    uint x = get_local_id(0), y = get_local_id(1);
    uint col = get_group_id(0) * TILE + x, row = get_group_id(1) * TILE + y;
    bool inside = get_group_id(0) * TILE + TILE <= n && get_group_id(1) * TILE + TILE <= m;
    local float *to_a = (local float *)tile_a[y] + x, *to_b = (local float *)tile_b[x] + y;
    float8 sums = 0.0f;
    for (uint at = 0; at < k; at += TILE) {
        if (inside && at + TILE <= k) {
            *to_a = a[row * k + at + x];
            *to_b = b[(at + y) * n + col];
        } else {
            *to_a = row < m && at + x < k ? a[row * k + at + x] : 0.0f;
            *to_b = at + y < k && col < n ? b[(at + y) * n + col] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < TILE / WIDE; i++) sums += tile_a[y][i] * tile_b[x][i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float4 halves = sums.lo + sums.hi;
    if (row < m && col < n) c[row * n + col] = halves.s0 + halves.s1 + halves.s2 + halves.s3;
}
