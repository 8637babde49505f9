// out = softmax(q k^T / sqrt(DEPTH)) v, [heads, n, DEPTH]; one query a thread, tiles of keys in local memory.
// FLOPs: 4 heads n^2 DEPTH. Bytes: 16 heads n DEPTH. The sum and the maximum are kept as the keys go by.
#define QUERIES 64
#define KEYS 32

kernel void attention(global const float *q, global const float *k, global const float *v, global float *out,
                      uint heads, uint n) {
    local float key[KEYS][DEPTH];
    local float value[KEYS][DEPTH];
    uint t = get_local_id(0), row = get_group_id(0) * QUERIES + t, head = get_group_id(1) * n;
    float query[DEPTH], sum[DEPTH];
    for (uint d = 0; d < DEPTH; d++) {
        query[d] = row < n ? q[(head + row) * DEPTH + d] * rsqrt((float)DEPTH) : 0.0f;
        sum[d] = 0.0f;
    }
    float most = -INFINITY, total = 0.0f;
    uint last = CAUSAL ? min(n, (uint)get_group_id(0) * QUERIES + QUERIES) : n;
    for (uint at = 0; at < last; at += KEYS) {
        for (uint j = t; j < KEYS * DEPTH; j += QUERIES) {
            bool there = at + j / DEPTH < n;
            key[j / DEPTH][j % DEPTH] = there ? k[(head + at) * DEPTH + j] : 0.0f;
            value[j / DEPTH][j % DEPTH] = there ? v[(head + at) * DEPTH + j] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        uint seen = min((uint)KEYS, last - at);
        for (uint j = 0; j < seen; j++) {
            if (CAUSAL && at + j > row) break;
            float score = 0.0f;
            for (uint d = 0; d < DEPTH; d++) score += query[d] * key[j][d];
            float above = max(most, score);
            float keep = exp(most - above), weight = exp(score - above);
            total = total * keep + weight;
            for (uint d = 0; d < DEPTH; d++) sum[d] = sum[d] * keep + weight * value[j][d];
            most = above;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < n)
        for (uint d = 0; d < DEPTH; d++) out[(head + row) * DEPTH + d] = sum[d] / total;
}
