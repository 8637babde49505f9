// c = a b by 64 x 64 tiles: 16 x 16 threads of 4 x 4 outputs each, slices of a and b 16 deep in local memory.
// FLOPs: 2 m n k. Reads asked: 2 k / 64 a output; local reads: 8 for 16 multiply-adds.
#define TILE 64
#define DEEP 16
#define SIDE 16

kernel void matmul_registers(global const float *a, global const float *b, global float *c, uint m, uint n, uint k) {
    local float slice_a[DEEP][TILE];
    local float slice_b[DEEP][TILE];
    uint x = get_local_id(0), y = get_local_id(1), id = y * SIDE + x;
    uint row = get_group_id(1) * TILE, col = get_group_id(0) * TILE;
    float4 sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
    for (uint at = 0; at < k; at += DEEP) {
        for (uint j = id; j < TILE * DEEP; j += SIDE * SIDE) {
            uint r = j / DEEP, d = j % DEEP;
            slice_a[d][r] = row + r < m && at + d < k ? a[(row + r) * k + at + d] : 0.0f;
            uint e = j / TILE, q = j % TILE;
            slice_b[e][q] = at + e < k && col + q < n ? b[(at + e) * n + col + q] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = 0; d < DEEP; d++) {
            float4 p = vload4(y, slice_a[d]), q = vload4(x, slice_b[d]);
            sum0 += p.s0 * q;
            sum1 += p.s1 * q;
            sum2 += p.s2 * q;
            sum3 += p.s3 * q;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float4 sums[4] = {sum0, sum1, sum2, sum3};
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++) {
            uint r = row + y * 4 + i, q = col + x * 4 + j;
            if (r < m && q < n) c[r * n + q] = ((float *)&sums[i])[j];
        }
}
