// c = a b by 64 x 64 tiles: 16 x 16 threads of 4 x 4 outputs each, slices of a and b 16 deep in local memory.
// FLOPs: 2 m n k. Reads asked: 2 k / 64 an output; local reads: 8 for 16 multiply-adds.
// Inside the matrices a thread brings 4 elements of each slice in one access, without tests, through a float4 that need
// not be aligned: PoCL calls a function for each vload4.
#define TILE 64
#define DEEP 16
#define SIDE 16

typedef float4 any4 __attribute__((aligned(4)));

kernel void matmul_registers(global const float *a, global const float *b, global float *c, uint m, uint n, uint k) {
    local float slice_a[TILE][DEEP];
    local float4 slice_b[DEEP][TILE / 4];
    uint x = get_local_id(0), y = get_local_id(1), id = y * SIDE + x;
    uint row = get_group_id(1) * TILE, col = get_group_id(0) * TILE;
    uint r = id / (DEEP / 4), d = id % (DEEP / 4) * 4, e = x * 4;
    float4 sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
    for (uint at = 0; at < k; at += DEEP) {
        if (row + TILE <= m && col + TILE <= n && at + DEEP <= k) {
            *(local any4 *)(slice_a[r] + d) = *(global const any4 *)(a + (row + r) * k + at + d);
            slice_b[y][x] = *(global const any4 *)(b + (at + y) * n + col + e);
        } else {
            for (uint j = 0; j < 4; j++) {
                slice_a[r][d + j] = row + r < m && at + d + j < k ? a[(row + r) * k + at + d + j] : 0.0f;
                bool there = at + y < k && col + e + j < n;
                ((local float *)slice_b[y])[e + j] = there ? b[(at + y) * n + col + e + j] : 0.0f;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < DEEP; i++) {
            float4 q = slice_b[i][x];
            sum0 += slice_a[y * 4][i] * q;
            sum1 += slice_a[y * 4 + 1][i] * q;
            sum2 += slice_a[y * 4 + 2][i] * q;
            sum3 += slice_a[y * 4 + 3][i] * q;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float4 sums[4] = {sum0, sum1, sum2, sum3};
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++)
            if (row + y * 4 + i < m && col + e + j < n)
                c[(row + y * 4 + i) * n + col + e + j] = ((float *)&sums[i])[j];
}
