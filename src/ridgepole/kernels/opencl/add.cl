// out = a + b. FLOPs: n. Bytes: 12 n.
kernel void add(global const float *a, global const float *b, global float *out, uint n) {
    uint i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}
