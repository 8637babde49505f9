// c = a b by 64 x 64 tiles: 16 x 16 threads of 4 x 4 outputs each, slices of a and b 16 deep in shared memory.
// FLOPs: 2 m n k. Reads asked: 2 k / 64 an output; shared reads: two of 16 bytes for 16 multiply-adds.
#define TILE 64
#define DEEP 16
#define SIDE 16
#define PAD 4 // keeps rows 16-byte aligned, and the transposed stores of a off one bank

extern "C" __global__ void __launch_bounds__(SIDE *SIDE)
    matmul_registers(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, unsigned m,
                     unsigned n, unsigned k) {
    __shared__ __align__(16) float slice_a[DEEP][TILE + PAD];
    __shared__ __align__(16) float slice_b[DEEP][TILE + PAD];
    unsigned x = threadIdx.x, y = threadIdx.y, id = y * SIDE + x;
    unsigned row = blockIdx.y * TILE, col = blockIdx.x * TILE;
    float sum[4][4] = {};
    for (unsigned at = 0; at < k; at += DEEP) {
#pragma unroll
        for (unsigned j = id; j < TILE * DEEP; j += SIDE * SIDE) {
            unsigned r = j / DEEP, d = j % DEEP;
            slice_a[d][r] = row + r < m && at + d < k ? a[(row + r) * k + at + d] : 0.0f;
            unsigned e = j / TILE, q = j % TILE;
            slice_b[e][q] = at + e < k && col + q < n ? b[(at + e) * n + col + q] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (unsigned d = 0; d < DEEP; d++) {
            float4 p = *(const float4 *)&slice_a[d][y * 4], q = *(const float4 *)&slice_b[d][x * 4];
            float left[4] = {p.x, p.y, p.z, p.w}, right[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            unsigned r = row + y * 4 + i, q = col + x * 4 + j;
            if (r < m && q < n) c[r * n + q] = sum[i][j];
        }
}
