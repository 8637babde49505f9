// c = a b by TILE x TILE tiles of a and b in local memory. FLOPs: 2 m n k. Reads asked: 2 k / TILE a output.
kernel void matmul_tiled(global const float *a, global const float *b, global float *c, uint m, uint n, uint k) {
    local float tile_a[TILE][TILE];
    local float tile_b[TILE][TILE];
    uint x = get_local_id(0), y = get_local_id(1);
    uint col = get_group_id(0) * TILE + x, row = get_group_id(1) * TILE + y;
    float sum = 0.0f;
    for (uint at = 0; at < k; at += TILE) {
        tile_a[y][x] = row < m && at + x < k ? a[row * k + at + x] : 0.0f;
        tile_b[y][x] = at + y < k && col < n ? b[(at + y) * n + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < TILE; i++) sum += tile_a[y][i] * tile_b[i][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && col < n) c[row * n + col] = sum;
}
