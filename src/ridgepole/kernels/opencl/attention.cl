// out = softmax(q k^T / sqrt(DEPTH)) v, [heads, n, DEPTH]; one query a thread, tiles of keys in local memory.
// FLOPs: 4 heads n^2 DEPTH. Bytes: 16 heads n DEPTH. The sum and the maximum are kept as the keys go by.
// Rows are held as float8, so that a CPU multiplies 8 at once.
#define QUERIES 64
#define KEYS 32
#define WIDE 8
#define ROW (DEPTH / WIDE)

kernel void attention(global const float *q, global const float *k, global const float *v, global float *out,
                      uint heads, uint n) {
    local float8 key[KEYS][ROW];
    local float8 value[KEYS][ROW];
    uint t = get_local_id(0), row = get_group_id(0) * QUERIES + t, head = get_group_id(1) * n;
    float8 query[ROW], sum[ROW];
    for (uint d = 0; d < ROW; d++) {
        query[d] = row < n ? ((global const float8 *)q)[(head + row) * ROW + d] * rsqrt((float)DEPTH) : 0.0f;
        sum[d] = 0.0f;
    }
    float most = -INFINITY, total = 0.0f;
    uint last = CAUSAL ? min(n, (uint)get_group_id(0) * QUERIES + QUERIES) : n;
    for (uint at = 0; at < last; at += KEYS) {
        for (uint j = t; j < KEYS * ROW; j += QUERIES) {
            bool there = at + j / ROW < n;
            key[j / ROW][j % ROW] = there ? ((global const float8 *)k)[(head + at) * ROW + j] : 0.0f;
            value[j / ROW][j % ROW] = there ? ((global const float8 *)v)[(head + at) * ROW + j] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        uint seen = min((uint)KEYS, last - at);
        for (uint j = 0; j < seen; j++) {
            if (CAUSAL && at + j > row) break;
            float8 products = 0.0f;
            for (uint d = 0; d < ROW; d++) products += query[d] * key[j][d];
            float4 halves = products.lo + products.hi;
            float score = halves.s0 + halves.s1 + halves.s2 + halves.s3;
            float above = max(most, score);
            float keep = exp(most - above), weight = exp(score - above);
            total = total * keep + weight;
            for (uint d = 0; d < ROW; d++) sum[d] = sum[d] * keep + weight * value[j][d];
            most = above;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < n)
        for (uint d = 0; d < ROW; d++) ((global float8 *)out)[(head + row) * ROW + d] = sum[d] / total;
}
